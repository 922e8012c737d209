"""Compact JSON as an automaton over bytes: no white space, few levels, no escapes."""

from __future__ import annotations

from typing import NamedTuple

DEEPEST = 3
"""Objects and arrays within one another."""
ARRAY, OBJECT, KEYS_LEFT, KEYS_OVER = "[", "{", "<", ">"
"""What is open; an outermost object of a form waits for its next key, or has had them all."""
WORDS = (b"true", b"false", b"null")
_DIGITS = b"0123456789"
_NUMBERS = {
    "minus": {b"0": "zero", b"123456789": "whole"},
    "zero": {b".": "point", b"eE": "exponent"},
    "whole": {_DIGITS: "whole", b".": "point", b"eE": "exponent"},
    "point": {_DIGITS: "fraction"},
    "fraction": {_DIGITS: "fraction", b"eE": "exponent"},
    "exponent": {b"+-": "sign", _DIGITS: "power"},
    "sign": {_DIGITS: "power"},
    "power": {_DIGITS: "power"},
}
"""The phases of a number, and where their bytes lead."""
_BEGINNING = {b"-": "minus", b"0": "zero", b"123456789": "whole"}
_ENDED = ("end", "zero", "whole", "fraction", "power")
"""Phases behind which a value may be over."""
_AFTER_COMMA = {ARRAY: "value", OBJECT: "key", KEYS_LEFT: "key"}


class State(NamedTuple):
    """What is open, outermost first, and what is expected or being written.

    ``phase`` is one of value, element (or the array's end), member (or the object's end), key,
    in key, colon, in text, one of a number's, end (of a value: comma or close), form (at the
    beginning, an object of one), over.
    """

    open: str
    phase: str


FREE_START, FORM_START = State("", "value"), State("", "form")
OVER = State("", "over")


def walk(state: State, text: bytes) -> State | None:
    """Return the state after a text, None where it may not stand there."""
    place, at = 0, state
    while place < len(text):
        word = next((w for w in WORDS if text.startswith(w, place)), None)
        if word is not None and at.open and at.phase in ("value", "element"):
            place, after = place + len(word), State(at.open, "end")
        else:
            step = _step(at, text[place])
            if step is None:
                return None
            place, after = place + 1, step
        at = after
    return at


def all_states() -> list[State]:
    """Return every state that a walk from a start may come to, starts first."""
    found = dict.fromkeys((FREE_START, FORM_START))
    waiting = list(found)
    while waiting:
        state = waiting.pop()
        steps = [walk(state, bytes([byte])) for byte in b'{}[]:,"01-.ex'] + [walk(state, b"true")]
        others = [s for s in (*steps, with_keys_over(state)) if s is not None and s not in found]
        found |= dict.fromkeys(others)
        waiting += others
    return list(found)


def with_keys_over(state: State) -> State:
    """Return the state whose form has had its last key."""
    return state._replace(open=state.open.replace(KEYS_LEFT, KEYS_OVER))


def _step(state: State, byte: int) -> State | None:
    holder = state.open[-1:]
    is_value = state.phase in ("value", "element") and state.open
    if state.phase in ("in key", "in text"):
        if byte == 0x22:
            return State(state.open, "colon" if state.phase == "in key" else "end")
        return state if byte >= 0x20 and byte != 0x5C else None
    if byte == 0x22:
        if state.phase in ("member", "key"):
            return State(state.open, "in key")
        return State(state.open, "in text") if is_value else None
    if byte in b"{[" and state.phase in ("value", "element", "form"):
        return _opened(state, byte)
    if byte in b"}]":
        return _closed(state, byte)
    if byte in b":" and state.phase == "colon":
        return State(state.open, "value")
    if byte in b"," and state.phase in _ENDED and holder in _AFTER_COMMA:
        return State(state.open, _AFTER_COMMA[holder])
    for several, phase in (_BEGINNING if is_value else _NUMBERS.get(state.phase, {})).items():
        if byte in several:
            return State(state.open, phase)
    return None


def _opened(state: State, byte: int) -> State | None:
    if len(state.open) == DEEPEST:
        return None
    if byte in b"[":
        return State(state.open + ARRAY, "element") if state.phase != "form" else None
    return State(state.open + (KEYS_LEFT if state.phase == "form" else OBJECT), "member")


def _closed(state: State, byte: int) -> State | None:
    holder, is_empty = state.open[-1:], state.phase in ("element", "member")
    fits = holder == ARRAY if byte in b"]" else holder in (OBJECT, KEYS_OVER)
    if not holder or not fits or not (is_empty or state.phase in _ENDED):
        return None
    rest = state.open[:-1]
    return State(rest, "end") if rest else OVER
