r"""Regular expressions in the core's own spelling, as labels of edges.

Only constructs whose meaning in the core is exact are used: characters, positive classes, groups,
``|``, ``*`` and ``?``; ASCII is escaped as ``\uNNNN``, everything else is written as itself. The
text is ready to stand between the quotes of an EBNF literal.
"""

from __future__ import annotations

from typing import NamedTuple

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import Dfa

DEPTH_LIMIT = 400
"""Groups in groups: the core's time to compile grows with their square."""

_CHARACTERS_PER_EDGE = 16

_BYTE_LENGTHS = tuple(
    CharacterSet.of([r]) for r in ((0, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF))
)
"""No class of an expression may cross these: the core would take overlong forms such as E0 80."""

_ALTERNATION, _SEQUENCE, _ATOM = range(3)
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _,:;=<>@%&'!~`#")


class Pattern(NamedTuple):
    """An expression; ``optional`` adds the empty word, ``depth`` counts groups in groups.

    ``loops`` tells of a ``*`` inside: the core gives ``x?`` the loops of the end of ``x``, so such
    an optional part is written as an alternative that is empty.
    """

    text: str
    optional: bool = False
    level: int = _ATOM
    depth: int = 0
    loops: bool = False
    atoms: int = 1
    """Characters to be read in it: about how many states the core makes of it."""


EMPTY_WORD = Pattern("", optional=True, atoms=0)


def characters_pattern(members: CharacterSet) -> Pattern:
    """Return the pattern of one character out of a nonempty set."""
    if len(members) == 1 and members.ranges[0][0]:
        return Pattern(_spell(members.ranges[0][0]))
    parts = [part for border in _BYTE_LENGTHS if (part := members & border)]
    texts = [f"[{''.join(_spell_range(a, b) for a, b in part.ranges)}]" for part in parts]
    return Pattern("|".join(texts), level=_ALTERNATION if len(texts) > 1 else _ATOM)


def sequence(first: Pattern, second: Pattern) -> Pattern:
    """Return the concatenation."""
    if not first.text:
        return second
    if not second.text:
        return first
    text = _part(first) + _part(second)
    depth = max(_part_depth(first), _part_depth(second))
    loops, atoms = first.loops or second.loops, first.atoms + second.atoms
    return Pattern(text, False, _SEQUENCE, depth, loops, atoms)


def either(first: Pattern, second: Pattern) -> Pattern:
    """Return the union."""
    optional = first.optional or second.optional
    if not first.text or not second.text or first.text == second.text:
        longer = first if first.text else second
        return longer._replace(optional=optional)
    text = f"{first.text}|{second.text}"
    depth = max(first.depth, second.depth)
    loops, atoms = first.loops or second.loops, first.atoms + second.atoms
    return Pattern(text, optional, _ALTERNATION, depth, loops, atoms)


def starred(item: Pattern) -> Pattern:
    """Return any number of copies."""
    if not item.text:
        return EMPTY_WORD
    depth = item.depth + (item.level != _ATOM)
    return Pattern(_grouped(item) + "*", False, _SEQUENCE, depth, True, item.atoms)


def whole(item: Pattern) -> str:
    """Return the text of a pattern that stands alone."""
    return _part(item) if item.optional and item.text else item.text


class Labels:
    """What leads from each state of an automaton to its targets; equal steps are spelled once."""

    def __init__(self, dfa: Dfa) -> None:
        self._edges = dfa.edges
        self._spelled: dict[tuple[tuple[int, int], ...], Pattern] = {}

    def of(self, state: int) -> dict[int, Pattern]:
        """Return the pattern to each target of a state."""
        ranges: dict[int, tuple[tuple[int, int], ...]] = {}
        for low, high, target in self._edges[state]:
            ranges[target] = (*ranges.get(target, ()), (low, high))
        return {target: self._pattern(steps) for target, steps in ranges.items()}

    def _pattern(self, steps: tuple[tuple[int, int], ...]) -> Pattern:
        found = self._spelled.get(steps)
        if found is None:
            found = self._spelled[steps] = characters_pattern(CharacterSet.of(steps))
        return found


def text_budget(dfa: Dfa) -> int:
    """Return by how many characters an expression may outgrow its labels, linear in the edges."""
    return 1_024 + _CHARACTERS_PER_EDGE * sum(len(out) + 1 for out in dfa.edges)


def _part(item: Pattern) -> str:
    """Return the text of a pattern inside a sequence."""
    if item.optional:
        return f"(?:{item.text}|)" if item.loops else _grouped(item) + "?"
    return _grouped(item) if item.level == _ALTERNATION else item.text


def _part_depth(item: Pattern) -> int:
    grouped = item.level == _ALTERNATION or (item.optional and item.level != _ATOM)
    return item.depth + grouped


def _grouped(item: Pattern) -> str:
    return item.text if item.level == _ATOM else f"(?:{item.text})"


def _spell_range(low: int, high: int) -> str:
    if low == high:
        return _spell(low)
    return f"{_spell(low)}{'-' if high > low + 1 else ''}{_spell(high)}"


def _spell(code: int) -> str:
    character = chr(code)
    if character in _PLAIN:
        return character
    if code < 0x80:
        return f"\\\\u{code:04x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
