"""Regular expressions as values: what the regex parser and the schema reduction build."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.text.automata.characters import ANY_CHARACTER, CharacterSet
from ninfer.text.automata.limits import STATE_LIMIT, AutomatonLimit


@dataclass(frozen=True, slots=True)
class One:
    """One character of a set."""

    members: CharacterSet


@dataclass(frozen=True, slots=True)
class Then:
    """The parts in sequence; no parts are the empty word."""

    parts: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Either:
    """Any of the parts; no parts are the empty language."""

    parts: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Repeat:
    """``low`` to ``high`` copies; None has no upper bound."""

    item: Expression
    low: int
    high: int | None


Expression = One | Then | Either | Repeat

EMPTY = Then()
ANYTHING = Repeat(One(ANY_CHARACTER), 0, None)


def word(text: str) -> Expression:
    """Return the expression of exactly one text."""
    return Then(tuple(One(CharacterSet.single(ord(c))) for c in text))


def require_size(expression: Expression, limit: int = STATE_LIMIT) -> int:
    """Return about how many states an expression needs once its repetitions are written out.

    Raises: AutomatonLimit — more than ``limit``.
    """
    size = _size(expression)
    if size > limit:
        raise AutomatonLimit.states(limit)
    return size


def _size(expression: Expression) -> int:
    match expression:
        case One():
            return 1
        case Then(parts) | Either(parts):
            return 1 + sum(map(_size, parts))
        case Repeat(item, low, high):
            copies = low + 1 if high is None else high
            return 1 + copies * _size(item)
