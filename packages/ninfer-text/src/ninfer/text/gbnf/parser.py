"""GBNF text to rules, without recursion."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from ninfer.text.automata.characters import ANY_CHARACTER
from ninfer.text.gbnf.reader import Reader
from ninfer.text.grammar import (
    Characters,
    ExcludedTokens,
    Literal,
    Node,
    Reference,
    TokenTerminal,
    alternation,
    concatenation,
    repetition,
)

GROUP_DEPTH_LIMIT = 256
"""Groups inside groups."""
RULE_LIMIT = 16_384
"""Rules of one text, groups that become rules included."""

_INLINE_DEPTH = 12
_RULE_START = re.compile(
    r"[A-Za-z_][A-Za-z0-9_.-]*(?:[ \t\r\n]|#[^\r\n]*[\r\n])*(?:\[[^\]\r\n]*\][ \t]*)?::="
)
_REFUSED = frozenset({"TagDispatch", "TokenTagDispatch", "Regex", "Substring"})
_TERMINALS = frozenset({"Token", "ExcludeToken"})


class Use(NamedTuple):
    """A place that refers to something by name or id."""

    offset: int
    name: str


class TokenUse(NamedTuple):
    """A place that names a token."""

    offset: int
    token: int


@dataclass(slots=True)
class Rules:
    """What a GBNF text says, in its own order; references are not yet checked."""

    bodies: dict[str, Node] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    token_uses: list[TokenUse] = field(default_factory=list)


@dataclass(slots=True)
class _Group:
    """An open group; the outermost one is the rule's own body, ``hint`` marks an annotation."""

    offset: int
    hint: bool = False
    options: list[Node] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    begun: bool = False
    """Whether the current option has an element, empty ones included."""


def parse_gbnf(text: str) -> Rules:
    """Return the rules of a GBNF text.

    Effects: a lookahead annotation is checked and dropped: it only ever was a hint for masks.
    Raises:  InvalidGrammar — with line and column; a passed limit is named.
    Source:  specification 4.1.
    """
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._reader = Reader(text)
        self._rules = Rules()
        self._groups: list[_Group] = []
        self._hinted = False

    def parse(self) -> Rules:
        reader = self._reader
        reader.skip_blanks()
        while reader.peek():
            self._rule()
            reader.skip_blanks()
        return self._rules

    def _rule(self) -> None:
        reader = self._reader
        start = reader.offset
        name = reader.name()
        if name is None:
            raise reader.refuse("a rule name is expected")
        if name in _REFUSED | _TERMINALS:
            raise reader.refuse(f"a rule may not be called {name}", start)
        if name in self._rules.bodies:
            raise reader.refuse(f"the rule {name} is defined twice", start)
        reader.skip_blanks()
        if reader.peek() == "[":
            raise reader.refuse("rule attributes are not supported")
        reader.expect("::=", "::= is expected after the rule name")
        self._define(name, self._body(), start)

    def _define(self, name: str, body: Node, start: int) -> None:
        self._rules.bodies[name] = body
        self._rules.places[name] = start
        if len(self._rules.bodies) > RULE_LIMIT:
            raise self._reader.refuse(f"there are more than {RULE_LIMIT} rules", start)

    def _body(self) -> Node:
        """Return the alternatives up to the next rule or the end."""
        reader = self._reader
        reader.skip_blanks()
        self._groups = [_Group(reader.offset)]
        self._hinted = False
        while reader.peek() and not self._at_next_rule():
            if self._hinted:
                raise reader.refuse("a lookahead annotation must end its rule")
            self._element()
            reader.skip_blanks()
        if len(self._groups) > 1:
            raise reader.refuse("the group is not closed", self._groups[-1].offset)
        return self._closed(self._groups.pop())

    def _at_next_rule(self) -> bool:
        return _RULE_START.match(self._reader.text, self._reader.offset) is not None

    def _element(self) -> None:
        reader = self._reader
        match reader.peek():
            case '"':
                self._append(Literal(reader.literal()))
            case "[":
                self._append(Characters(reader.character_class()))
            case ".":
                reader.offset += 1
                self._append(Characters(ANY_CHARACTER))
            case "(":
                self._open()
            case ")":
                self._close()
            case "|":
                self._next_option()
            case "*" | "+" | "?" | "{":
                raise reader.refuse("the quantifier has nothing to repeat")
            case _:
                self._append(self._named())

    def _named(self) -> Node:
        reader = self._reader
        start = reader.offset
        name = reader.name()
        if name is None:
            raise reader.refuse(f"unexpected character {reader.peek()!r}")
        if name in _REFUSED:
            raise reader.refuse(f"{name} is not supported", start)
        if name in _TERMINALS:
            return self._tokens(name)
        self._rules.uses.append(Use(start, name))
        return Reference(name)

    def _tokens(self, name: str) -> Node:
        reader = self._reader
        reader.expect("(", f"{name} needs a list of token ids")
        ids: list[int] = []
        while True:
            reader.skip_blanks()
            start = reader.offset
            token = reader.number()
            if token is None:
                raise reader.refuse("a token id is expected")
            self._rules.token_uses.append(TokenUse(start, token))
            ids.append(token)
            reader.skip_blanks()
            if reader.skip(")"):
                break
            reader.expect(",", "a comma or a closing parenthesis is expected")
        listed = tuple(dict.fromkeys(ids))
        return TokenTerminal(listed) if name == "Token" else ExcludedTokens(listed)

    def _open(self) -> None:
        reader = self._reader
        start = reader.offset
        hint = reader.text.startswith("(=", start)
        if hint and len(self._groups) > 1:
            raise reader.refuse("a lookahead annotation must end its rule")
        if len(self._groups) > GROUP_DEPTH_LIMIT:
            raise reader.refuse(f"groups are nested more than {GROUP_DEPTH_LIMIT} deep")
        reader.offset += 2 if hint else 1
        self._groups.append(_Group(start, hint=hint))

    def _close(self) -> None:
        reader = self._reader
        if len(self._groups) == 1:
            raise reader.refuse("the closing parenthesis has no opening one")
        group = self._groups.pop()
        empty = not group.begun and not group.options
        body = Literal("") if empty and not group.hint else self._closed(group)
        reader.offset += 1
        if group.hint:
            self._hinted = True
        else:
            self._append(self._as_rule(body, group))

    def _as_rule(self, body: Node, group: _Group) -> Node:
        """Return a deep group as a rule of its own, so that no node is deeper than a few levels."""
        if len(self._groups) % _INLINE_DEPTH:
            return body
        name = f"group {group.offset}"  # no name of the text has a blank
        self._define(name, body, group.offset)
        return Reference(name)

    def _next_option(self) -> None:
        group = self._groups[-1]
        if group.hint:
            raise self._reader.refuse("a lookahead annotation has no alternatives")
        self._end_option(group)
        self._reader.offset += 1

    def _end_option(self, group: _Group) -> None:
        if not group.begun:
            raise self._reader.refuse('an alternative is empty; write ""')
        group.options.append(concatenation(*group.items))
        group.items, group.begun = [], False

    def _closed(self, group: _Group) -> Node:
        self._end_option(group)
        return alternation(*group.options)

    def _append(self, item: Node) -> None:
        reader = self._reader
        reader.skip_blanks()
        bounds = self._quantifier()
        if bounds is not None:
            item = repetition(item, *bounds)
        self._groups[-1].items.append(item)
        self._groups[-1].begun = True

    def _quantifier(self) -> tuple[int, int | None] | None:
        reader = self._reader
        start = reader.offset
        bounds = self._bounds()
        if bounds is None:
            return None
        low, high = bounds
        if high is not None and high < low:
            raise reader.refuse(f"the upper bound {high} is below the lower bound {low}", start)
        reader.skip_blanks()
        if reader.peek() in ("*", "+", "?", "{"):
            raise reader.refuse("a quantifier follows a quantifier")
        return bounds

    def _bounds(self) -> tuple[int, int | None] | None:
        reader = self._reader
        for mark, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if reader.skip(mark):
                return bounds
        if not reader.skip("{"):
            return None
        reader.skip_blanks()
        low = reader.number()
        if low is None:
            raise reader.refuse("a repetition needs its lower bound")
        reader.skip_blanks()
        high: int | None = low
        if reader.skip(","):
            reader.skip_blanks()
            high = reader.number()
        reader.expect("}", "a closing brace is expected")
        return low, high
