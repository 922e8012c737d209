"""Expression text to branches of a regular expression, without recursion."""

from __future__ import annotations

from dataclasses import dataclass, field

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.expression import Either, Expression, One, Repeat, Then
from ninfer.text.regex.reader import Reader, refuse
from ninfer.text.regex.sets import DOT

GROUP_DEPTH_LIMIT = 100
"""Groups inside groups."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One top-level alternative and the ends it is tied to."""

    expression: Expression
    at_start: bool
    at_end: bool


@dataclass(slots=True)
class _Group:
    """A group that is still open; the outermost one stands for the whole expression."""

    offset: int
    parts: list[Expression] = field(default_factory=list)
    options: list[Expression] = field(default_factory=list)

    def close_option(self) -> None:
        self.options.append(self.parts[0] if len(self.parts) == 1 else Then(tuple(self.parts)))
        self.parts = []

    def close(self) -> Expression:
        self.close_option()
        return self.options[0] if len(self.options) == 1 else Either(tuple(self.options))


def parse_regex(text: str) -> tuple[Branch, ...]:
    """Return the top-level branches of an expression.

    Math:   greedy and lazy quantifiers describe the same language; captures are groups.
    Raises: InvalidRegex — with the offset of what is not supported or not well formed.
    Source: specification 4.1.
    """
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._reader = Reader(text)
        self._groups = [_Group(0)]
        self._branches: list[Branch] = []
        self._names: set[str] = set()
        self._at_start = False
        self._at_end = False

    def parse(self) -> tuple[Branch, ...]:
        reader = self._reader
        self._at_start = reader.skip("^")
        while character := reader.peek():
            if self._at_end and not (character == "|" and len(self._groups) == 1):
                raise refuse(reader.offset - 1, "$ is only supported at the end of a branch")
            self._element(character)
        if len(self._groups) > 1:
            raise refuse(self._groups[-1].offset, "the group is not closed")
        self._close_branch()
        return tuple(self._branches)

    def _element(self, character: str) -> None:
        reader = self._reader
        match character:
            case "|":
                self._next_option()
            case "(":
                self._open_group()
            case ")":
                self._close_group()
            case "^":
                raise refuse(reader.offset, "^ is only supported at the start of a branch")
            case "$":
                self._end_anchor()
            case "*" | "+" | "?" | "{":
                raise refuse(reader.offset, "the quantifier has nothing to repeat")
            case _:
                self._append(One(self._atom(character)))

    def _atom(self, character: str) -> CharacterSet:
        reader = self._reader
        if character == "\\":
            return reader.escape()
        reader.take()
        if character == "[":
            return reader.character_class()
        return DOT if character == "." else CharacterSet.single(ord(character))

    def _append(self, item: Expression) -> None:
        bounds = self._reader.quantifier()
        self._groups[-1].parts.append(item if bounds is None else Repeat(item, *bounds))

    def _next_option(self) -> None:
        self._reader.take()
        if len(self._groups) > 1:
            self._groups[-1].close_option()
            return
        self._close_branch()
        self._at_start = self._reader.skip("^")

    def _close_branch(self) -> None:
        expression = self._groups[0].close()
        self._branches.append(Branch(expression, self._at_start, self._at_end))
        self._groups[0] = _Group(self._reader.offset)
        self._at_start = self._at_end = False

    def _end_anchor(self) -> None:
        reader = self._reader
        if len(self._groups) > 1:
            raise refuse(reader.offset, "$ is only supported at the end of a branch")
        reader.take()
        self._at_end = True

    def _open_group(self) -> None:
        reader = self._reader
        start = reader.offset
        reader.take()
        if reader.skip("?"):
            self._group_kind(start)
        if len(self._groups) > GROUP_DEPTH_LIMIT:
            raise refuse(start, f"groups are nested more than {GROUP_DEPTH_LIMIT} deep")
        self._groups.append(_Group(start))

    def _group_kind(self, start: int) -> None:
        reader = self._reader
        if reader.skip(":"):
            return
        for mark in ("=", "!", "<=", "<!"):
            if reader.skip(mark):
                raise refuse(start, f"the lookaround (?{mark} is not supported")
        if not reader.skip("<"):
            raise refuse(start, "inline flags are not supported")
        closing = reader.text.find(">", reader.offset)
        name = reader.text[reader.offset : closing] if closing >= 0 else ""
        if not name.isidentifier():
            raise refuse(start, "the group name is not an identifier")
        if name in self._names:
            raise refuse(start, f"two groups are named {name}")
        self._names.add(name)
        reader.offset = closing + 1

    def _close_group(self) -> None:
        reader = self._reader
        if len(self._groups) == 1:
            raise refuse(reader.offset, "the closing parenthesis has no opening one")
        reader.take()
        self._append(self._groups.pop().close())
