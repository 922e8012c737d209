r"""Turns the regular parts of a hand-written grammar into automata.

Spelled as written, a string such as ``"\"" (plain | escape)* "\""`` costs a scan of the vocabulary
at every mask; as one deterministic machine it costs a lookup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from ninfer.text.automata.dfa import EMPTY_WORD
from ninfer.text.automata.expression import (
    Either,
    Expression,
    One,
    Repeat,
    Then,
    require_size,
    word,
)
from ninfer.text.automata.limits import AutomatonLimit, Work
from ninfer.text.automata.operations import difference
from ninfer.text.automata.subset import compile_expression
from ninfer.text.grammar import (
    Alternation,
    Automaton,
    Characters,
    Concatenation,
    Grammar,
    Literal,
    Node,
    Reference,
    Repetition,
    children,
    concatenation,
    references,
    repetition,
    with_children,
)

SMALL = 16
"""Written-out size up to which a rule becomes part of the rules that use it."""
STATE_LIMIT = 1_024
"""States up to which a regular part becomes one automaton."""
COUNTED = 32
"""Copies of one class that may become states; the emitter finds more a form of their own."""

_WIDE = 1_000


def with_automata(grammar: Grammar) -> Grammar:
    """Return the grammar with automata where repetitions and alternatives are regular.

    Math: the language stays. A rule that is small, not recursive and has no loop over a wide class
          is regular wherever it is used; larger ones keep their names, so that their machines are
          built once. A part that would pass STATE_LIMIT stays as it is written, as do all once
          the steps of one grammar are spent.
    """
    rewriting = _Rewriting(_small_rules(grammar.rules))
    rules = {name: rewriting.node(body) for name, body in grammar.rules.items()}
    entry = rewriting.node(grammar.entry)
    return Grammar(_spared(entry, rules), {n: _spared(body, rules) for n, body in rules.items()})


def _spared(node: Node, rules: Mapping[str, Node]) -> Node:
    """Return the node with repeated automata that need no empty word without it.

    Math: (x | "")* is x* and (x | ""){m,n} is x{0,n}; the core would follow every empty copy.
    """
    if isinstance(node, Repetition):
        item = node.item
        body = rules[item.rule] if isinstance(item, Reference) else item
        if isinstance(body, Automaton) and body.dfa.accepting[0]:
            return repetition(Automaton(difference(body.dfa, EMPTY_WORD)), 0, node.high)
    return with_children(node, lambda child: _spared(child, rules))


class _Rewriting:
    def __init__(self, rules: Mapping[str, Expression]) -> None:
        self._rules = rules
        self._made: dict[Node, Node | None] = {}
        self._work = Work()

    def node(self, node: Node) -> Node:
        if isinstance(node, Reference) or not _has_choice(node):
            return node
        whole = self._automaton(node)
        if whole is not None:
            return whole
        if isinstance(node, Concatenation):
            return concatenation(*self._runs(node.items))
        return with_children(node, self.node)

    def _runs(self, items: tuple[Node, ...]) -> Iterator[Node]:
        """Yield neighbouring regular items as one automaton, the others rewritten one by one."""
        for regular, run in groupby(items, key=self._is_regular):
            part = tuple(run)
            together = concatenation(*part)
            found = self._automaton(together) if regular and _has_choice(together) else None
            yield from map(self.node, part) if found is None else (found,)

    def _is_regular(self, node: Node) -> bool:
        return _expression(node, self._rules) is not None

    def _automaton(self, node: Node) -> Node | None:
        if node not in self._made:
            self._made[node] = _automaton(_expression(node, self._rules), self._work)
        return self._made[node]


def _small_rules(rules: Mapping[str, Node]) -> dict[str, Expression]:
    """Return the expressions of the small rules, callees first."""
    expressions: dict[str, Expression] = {}
    waiting = {name: set(references(body)) for name, body in rules.items()}
    users: dict[str, list[str]] = {}
    for name, used in waiting.items():
        for rule in used:
            users.setdefault(rule, []).append(name)
    ready = [name for name, used in waiting.items() if not used]
    while ready:
        name = ready.pop()
        expression = _expression(rules[name], expressions)
        if expression is None or _has_wide_loop(expression) or not _fits(expression, SMALL):
            continue
        expressions[name] = expression
        for user in users.get(name, ()):
            waiting[user].discard(name)
            if not waiting[user]:
                ready.append(user)
    return expressions


def _expression(node: Node, rules: Mapping[str, Expression]) -> Expression | None:
    match node:
        case Literal(text):
            return word(text) if len(text) <= STATE_LIMIT else None
        case Characters(members):
            return One(members)
        case Reference(rule):
            return rules.get(rule)
        case Repetition(Characters(), _, high) if high is not None and high > COUNTED:
            return None
        case Repetition(item, low, high):
            inner = _expression(item, rules)
            return None if inner is None else Repeat(inner, low, high)
        case Concatenation() | Alternation():
            parts = [_expression(child, rules) for child in children(node)]
            known = tuple(part for part in parts if part is not None)
            if len(known) < len(parts):
                return None
            return Then(known) if isinstance(node, Concatenation) else Either(known)
        case _:
            return None


def _automaton(expression: Expression | None, work: Work) -> Node | None:
    if expression is None or not _fits(expression, STATE_LIMIT):
        return None
    try:
        return Automaton(compile_expression(expression, STATE_LIMIT, work))
    except AutomatonLimit:
        return None


def _has_choice(node: Node) -> bool:
    """Return whether a repetition or alternatives are written here."""
    if isinstance(node, Concatenation):
        return any(map(_has_choice, node.items))
    return isinstance(node, Repetition | Alternation)


def _fits(expression: Expression, limit: int) -> bool:
    try:
        require_size(expression, limit)
    except AutomatonLimit:
        return False
    return True


def _has_wide_loop(expression: Expression) -> bool:
    match expression:
        case One():
            return False
        case Then(parts) | Either(parts):
            return any(map(_has_wide_loop, parts))
        case Repeat(item, _, high):
            return (high is None and _is_wide(item)) or _has_wide_loop(item)


def _is_wide(expression: Expression) -> bool:
    match expression:
        case One(members):
            return len(members) > _WIDE
        case Then(parts) | Either(parts):
            return any(map(_is_wide, parts))
        case Repeat(item):
            return _is_wide(item)
