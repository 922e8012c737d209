"""The grammar that every constraint becomes: named rules over immutable nodes, and an entry.

Knows languages, not syntax: front ends build it, envelopes wrap it, ``emitter`` spells it for the
core. Every node describes a set of texts; a token node describes one token whatever its bytes are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import Dfa


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly one text; every Unicode scalar value may occur, NUL included."""

    text: str

    def __post_init__(self) -> None:
        self.text.encode()


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of a set; an empty set describes nothing."""

    members: CharacterSet


@dataclass(frozen=True, slots=True)
class Concatenation:
    """The items one after another; no items describe the empty text."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """Any one of the options; no options describe nothing."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """``low`` to ``high`` copies of the item; ``high`` None has no upper bound."""

    item: Node
    low: int
    high: int | None

    def __post_init__(self) -> None:
        if self.low < 0 or (self.high is not None and self.high < self.low):
            raise ValueError(f"not a repetition: {self.low} to {self.high}")


@dataclass(frozen=True, slots=True)
class Reference:
    """The language of a named rule."""

    rule: str


@dataclass(frozen=True, slots=True)
class Automaton:
    """The words of a deterministic automaton."""

    dfa: Dfa


@dataclass(frozen=True, slots=True)
class TokenTerminal:
    """One of the given tokens, matched by identity."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ExcludedTokens:
    """Any ordinary token except the given ones, matched by identity."""

    ids: tuple[int, ...]


Node = (
    Literal
    | Characters
    | Concatenation
    | Alternation
    | Repetition
    | Reference
    | Automaton
    | TokenTerminal
    | ExcludedTokens
)

EMPTY = Literal("")
NOTHING = Alternation(())


@dataclass(frozen=True, slots=True)
class Grammar:
    """An entry and the rules it leans on.

    Raises: ValueError — a reference names no rule.
    """

    entry: Node
    rules: Mapping[str, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", MappingProxyType(dict(self.rules)))
        for body in (self.entry, *self.rules.values()):
            for name in references(body):
                if name not in self.rules:
                    raise ValueError(f"no rule is named {name!r}")


def literal(text: str) -> Node:
    """Return the node of one text."""
    return Literal(text)


def concatenation(*items: Node) -> Node:
    """Return the items in sequence, flattened, with neighbouring texts joined."""
    flat: list[Node] = []
    texts: list[str] = []
    for item in items:
        for part in item.items if isinstance(item, Concatenation) else (item,):
            if isinstance(part, Literal):
                texts.append(part.text)
                continue
            if part == NOTHING:
                return NOTHING
            _flush(texts, flat)
            flat.append(part)
    _flush(texts, flat)
    return flat[0] if len(flat) == 1 else Concatenation(tuple(flat)) if flat else EMPTY


def _flush(texts: list[str], flat: list[Node]) -> None:
    """Move gathered texts behind the nodes as one."""
    if text := "".join(texts):
        flat.append(Literal(text))
    texts.clear()


def alternation(*options: Node) -> Node:
    """Return the union, flattened and without repeated options."""
    flat: dict[Node, None] = {}
    for option in options:
        parts = option.options if isinstance(option, Alternation) else (option,)
        flat.update(dict.fromkeys(parts))
    return next(iter(flat)) if len(flat) == 1 else Alternation(tuple(flat))


def optional(item: Node) -> Node:
    """Return the item or the empty text."""
    return repetition(item, 0, 1)


def repetition(item: Node, low: int, high: int | None) -> Node:
    """Return between ``low`` and ``high`` copies of the item.

    Math: (x*){m,n} is x*, and (x{0,k})* and (x{1,k}){m,} are x repeated without an upper bound.
    """
    if high == 0 or item == EMPTY:
        return EMPTY
    if low == high == 1:
        return item
    if isinstance(item, Repetition):
        if item.low == 0 and item.high is None:
            return item
        if high is None and item.low <= 1 and item.high != 0:
            return Repetition(item.item, low * item.low, None)
    return Repetition(item, low, high)


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node."""
    if type(node) is Concatenation:
        return node.items
    if type(node) is Alternation:
        return node.options
    return (node.item,) if type(node) is Repetition else ()


def with_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return the node with each node directly below it changed."""
    if isinstance(node, Concatenation):
        return concatenation(*map(change, node.items))
    if isinstance(node, Alternation):
        return alternation(*map(change, node.options))
    return (
        repetition(change(node.item), node.low, node.high) if isinstance(node, Repetition) else node
    )


def references(node: Node) -> list[str]:
    """Return the rule names below a node, in order, without following them."""
    found: list[str] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if type(current) is Reference:
            found.append(current.rule)
        elif below := children(current):
            pending.extend(reversed(below))
    return found


def rename(node: Node, names: Mapping[str, str]) -> Node:
    """Return the node with its rule references renamed; other names stay."""
    match node:
        case Reference(rule):
            return Reference(names.get(rule, rule))
        case Concatenation(items):
            return Concatenation(tuple(rename(item, names) for item in items))
        case Alternation(options):
            return Alternation(tuple(rename(option, names) for option in options))
        case Repetition(item, low, high):
            return Repetition(rename(item, names), low, high)
        case _:
            return node


def join(
    grammars: Sequence[Grammar],
    build: Callable[[Sequence[Node]], Node],
    rules: Mapping[str, Node] | None = None,
) -> Grammar:
    """Return one grammar whose entry is built from the entries of several.

    Rules of the same name and body are shared; a name that would change its meaning is numbered.
    ``rules`` are further rules that ``build`` refers to.
    """
    merged: dict[str, Node] = dict(rules or {})
    entries: list[Node] = []
    for grammar in grammars:
        names = _clash_free(grammar.rules, merged)
        merged.update({names.get(n, n): rename(b, names) for n, b in grammar.rules.items()})
        entries.append(rename(grammar.entry, names))
    return Grammar(build(entries), merged)


def _clash_free(rules: Mapping[str, Node], taken: Mapping[str, Node]) -> dict[str, str]:
    """Return new names for rules that clash, and for all rules that lean on a renamed one."""
    clashing = {name for name, body in rules.items() if taken.get(name, body) != body}
    grown = True
    while grown:
        leaning = {
            name for name, body in rules.items() if not clashing.isdisjoint(references(body))
        }
        grown = not leaning <= clashing
        clashing |= leaning
    return dict(zip(sorted(clashing), _fresh(sorted(clashing), {*taken, *rules}), strict=True))


def _fresh(names: Iterable[str], taken: set[str]) -> Iterator[str]:
    for name in names:
        number = 2
        while f"{name}_{number}" in taken:
            number += 1
        taken.add(f"{name}_{number}")
        yield f"{name}_{number}"
