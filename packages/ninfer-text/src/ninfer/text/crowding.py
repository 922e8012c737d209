"""How much the core has to follow at one place of a grammar.

At a place it follows every part that may come next, through the rules that may begin there and past
the parts that may be absent. Each is a mask of its own at the first visit; and where parts that may
be absent lead back to each other, each brings all the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

from ninfer.text.automata.dfa import Dfa
from ninfer.text.grammar import (
    Alternation,
    Automaton,
    Characters,
    Concatenation,
    ExcludedTokens,
    Literal,
    Node,
    Reference,
    Repetition,
    TokenTerminal,
)
from ninfer.text.rows import is_nullable

BEGINNING_LIMIT = 1_536
"""Parts that one place may begin with; a wide class counts as 64, since its mask is as dear."""

_WIDE = 1_000
_WIDE_WEIGHT = 64
"""What the first mask of a wide class costs, in those of a letter."""
_TEXTS_APART = 8


class Crowd(NamedTuple):
    """The parts that a rule's fullest place begins with, and the circle that the rule is in."""

    rule: str
    parts: int
    rules_in_circle: int
    absent_in_circle: int


@dataclass(slots=True)
class _Beginning:
    """What may come first in a rule: the weight of what is read, and the rules called."""

    weight: int
    calls: list[str]
    skipped: int
    """Parts that may be absent among them."""


def crowds(rules: Mapping[str, Node], nullable: Set[str]) -> Iterator[Crowd]:
    """Yield the crowd of every rule.

    Math: the parts at a place are those of all rules that its calls reach by beginnings alone; a
          circle is a strongly connected set of rules under the same relation.
    """
    names = list(rules)
    numbers = {name: number for number, name in enumerate(names)}
    starts = [_first(rules[name], nullable) for name in names]
    graph = [[numbers[call] for call in start.calls] for start in starts]
    components = _components(graph)
    reached = _reached(graph, components)
    planes = _planes([start.weight for start in starts])
    weights = {bits: _weight(bits, planes) for bits in set(reached)}
    circles = _circles(graph, components, starts)
    for number, name in enumerate(names):
        parts = max(
            (
                place.weight + sum(weights[reached[numbers[call]]] for call in set(place.calls))
                for place in (starts[number], *_rows(rules[name], nullable))
            ),
        )
        yield Crowd(name, parts, *circles[number])


def _first(node: Node, nullable: Set[str]) -> _Beginning:
    found = _Beginning(0, [], 0)
    _collect(node, nullable, found)
    return found


def _collect(node: Node, nullable: Set[str], found: _Beginning) -> None:
    match node:
        case Reference(rule):
            found.calls.append(rule)
            found.skipped += rule in nullable
        case Concatenation(items):
            for item in items:
                _collect(item, nullable, found)
                if not is_nullable(item, nullable):
                    break
        case Alternation(options):
            _collect_options(options, nullable, found)
        case Repetition(item, low):
            _collect(item, nullable, found)
            found.skipped += low == 0
        case _:
            found.weight += _read_weight(node)


def _collect_options(options: tuple[Node, ...], nullable: Set[str], found: _Beginning) -> None:
    """Collect alternatives; single characters become one class, and many texts one automaton."""
    texts = sum(isinstance(option, Literal) for option in options)
    found.weight += min(texts, _TEXTS_APART)
    classes = [option for option in options if isinstance(option, Characters)]
    found.weight += max(map(_read_weight, classes), default=0)
    for option in options:
        if not isinstance(option, Literal | Characters):
            _collect(option, nullable, found)


def _read_weight(node: Node) -> int:
    match node:
        case Literal(text):
            return 1 if text else 0
        case Characters(members):
            return _WIDE_WEIGHT if len(members) > _WIDE else 1
        case Automaton(dfa):
            return _WIDE_WEIGHT if _is_wide(dfa) else 1
        case ExcludedTokens():
            return _WIDE_WEIGHT
        case TokenTerminal():
            return 1
        case _:
            return 0


def _is_wide(dfa: Dfa) -> bool:
    return sum(high - low + 1 for low, high, _ in dfa.edges[0]) > _WIDE


def _rows(node: Node, nullable: Set[str]) -> Iterator[_Beginning]:
    """Yield what may come first behind the parts of every sequence in a node."""
    pending = [node]
    while pending:
        current = pending.pop()
        match current:
            case Concatenation(items):
                pending.extend(items)
                yield from _places(items, nullable)
            case Alternation(options):
                pending.extend(options)
            case Repetition(item):
                pending.append(item)
            case _:
                pass


def _places(items: tuple[Node, ...], nullable: Set[str]) -> Iterator[_Beginning]:
    found = _Beginning(0, [], 0)
    for item in items:
        _collect(item, nullable, found)
        if not is_nullable(item, nullable):
            yield found
            found = _Beginning(0, [], 0)
    yield found


def _components(graph: list[list[int]]) -> list[int]:
    """Return the strongly connected component of every node, callees before callers.

    Source: Tarjan 1972, without recursion.
    """
    order, low = [-1] * len(graph), [0] * len(graph)
    component = [-1] * len(graph)
    stack: list[int] = []
    count = components = 0
    for root in range(len(graph)):
        work = [(root, 0)] if order[root] < 0 else []
        while work:
            node, place = work.pop()
            if place == 0:
                order[node] = low[node] = count
                count += 1
                stack.append(node)
            for index in range(place, len(graph[node])):
                target = graph[node][index]
                if order[target] < 0:
                    work += [(node, index + 1), (target, 0)]
                    break
                if component[target] < 0:
                    low[node] = min(low[node], order[target])
            else:
                if low[node] == order[node]:
                    while component[node] < 0:
                        component[stack.pop()] = components
                    components += 1
                if work:
                    caller = work[-1][0]
                    low[caller] = min(low[caller], low[node])
    return component


def _reached(graph: list[list[int]], components: list[int]) -> list[int]:
    """Return the nodes that every node reaches, itself included, as bit sets."""
    members: dict[int, list[int]] = {}
    for node, component in enumerate(components):
        members.setdefault(component, []).append(node)
    bits: dict[int, int] = {}
    for component in sorted(members):
        own = 0
        for node in members[component]:
            own |= 1 << node
            for target in graph[node]:
                if components[target] != component:
                    own |= bits[components[target]]
        bits[component] = own
    return [bits[component] for component in components]


def _planes(weights: Iterable[int]) -> list[int]:
    """Return the nodes whose weight has bit k, for every k."""
    planes: list[int] = []
    for node, weight in enumerate(weights):
        for bit in range(weight.bit_length()):
            while len(planes) <= bit:
                planes.append(0)
            if weight >> bit & 1:
                planes[bit] |= 1 << node
    return planes


def _weight(bits: int, planes: list[int]) -> int:
    return sum((bits & plane).bit_count() << bit for bit, plane in enumerate(planes))


def _circles(
    graph: list[list[int]], components: list[int], starts: list[_Beginning]
) -> list[tuple[int, int]]:
    """Return rules, and parts that may be absent, in the circle of every node; 0 outside."""
    sizes: dict[int, int] = {}
    absent: dict[int, int] = {}
    loops: set[int] = set()
    for node, component in enumerate(components):
        sizes[component] = sizes.get(component, 0) + 1
        absent[component] = absent.get(component, 0) + starts[node].skipped
        if sizes[component] > 1 or node in graph[node]:
            loops.add(component)
    return [(sizes[c], absent[c]) if c in loops else (0, 0) for c in components]
