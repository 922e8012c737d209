"""The rules every JSON grammar shares: string, number, value, object, array.

Always the same nodes under the same names, so that the core compiles and caches them once for all
grammars of a process. The spelling is compact: ``,`` and ``:`` without white space.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.grammar import (
    Automaton,
    Grammar,
    Literal,
    Node,
    Reference,
    alternation,
    concatenation,
    optional,
    repetition,
)

STRING = Reference("json_string")
NUMBER = Reference("json_number")
INTEGER = Reference("json_integer")
VALUE = Reference("json_value")
OBJECT = Reference("json_object")
ARRAY = Reference("json_array")
MEMBER = Reference("json_member")
BOOLEAN = alternation(Literal("true"), Literal("false"))
NULL = Literal("null")

PLAIN_CHARACTERS = ~CharacterSet.of([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)])
"""Characters that a JSON string may hold as themselves."""


def separated(item: Node, separator: str = ",") -> Node:
    """Return one or more items with a separator between them."""
    return concatenation(item, repetition(concatenation(Literal(separator), item), 0, None))


def json_object_grammar() -> Grammar:
    """Return the language of one JSON object with any members."""
    return Grammar(OBJECT, JSON_RULES)


def json_value_grammar() -> Grammar:
    """Return the language of any JSON value."""
    return Grammar(VALUE, JSON_RULES)


_HEX = "0123456789abcdefABCDEF"
_DIGITS = "0123456789"


def _string_automaton() -> Dfa:
    r"""Return a string with its quotes; ``\u`` spells one scalar value or one surrogate pair."""
    opening, body, escape, closed, four, three, two, one, after_d = range(9)
    high_two, high_one, low_backslash, low_u, low_d, low_rest = range(9, 15)
    steps: dict[int, list[tuple[CharacterSet, int]]] = {
        opening: [(_any('"'), body)],
        body: [(PLAIN_CHARACTERS, body), (_any('"'), closed), (_any("\\"), escape)],
        escape: [(_any('"\\/bfnrt'), body), (_any("u"), four)],
        closed: [],
        four: [(_any("0123456789abcefABCEF"), three), (_any("dD"), after_d)],
        three: [(_any(_HEX), two)],
        two: [(_any(_HEX), one)],
        one: [(_any(_HEX), body)],
        after_d: [(_any("01234567"), two), (_any("89abAB"), high_two)],
        high_two: [(_any(_HEX), high_one)],
        high_one: [(_any(_HEX), low_backslash)],
        low_backslash: [(_any("\\"), low_u)],
        low_u: [(_any("u"), low_d)],
        low_d: [(_any("dD"), low_rest)],
        low_rest: [(_any("cdefCDEF"), two)],
    }
    return _automaton(steps, accepting={closed})


def _integer_automaton() -> Dfa:
    return _automaton(
        {
            0: [(_any("-"), 1), (_any("0"), 2), (_any("123456789"), 3)],
            1: [(_any("0"), 2), (_any("123456789"), 3)],
            2: [],
            3: [(_any(_DIGITS), 3)],
        },
        accepting={2, 3},
    )


def _number_automaton() -> Dfa:
    start, minus, zero, whole, point, fraction, exponent, sign, power = range(9)
    return _automaton(
        {
            start: [(_any("-"), minus), (_any("0"), zero), (_any("123456789"), whole)],
            minus: [(_any("0"), zero), (_any("123456789"), whole)],
            zero: [(_any("."), point), (_any("eE"), exponent)],
            whole: [(_any(_DIGITS), whole), (_any("."), point), (_any("eE"), exponent)],
            point: [(_any(_DIGITS), fraction)],
            fraction: [(_any(_DIGITS), fraction), (_any("eE"), exponent)],
            exponent: [(_any("+-"), sign), (_any(_DIGITS), power)],
            sign: [(_any(_DIGITS), power)],
            power: [(_any(_DIGITS), power)],
        },
        accepting={zero, whole, fraction, power},
    )


def _any(characters: str) -> CharacterSet:
    return CharacterSet.from_text(characters)


def _automaton(steps: dict[int, list[tuple[CharacterSet, int]]], accepting: set[int]) -> Dfa:
    edges = tuple(
        tuple(sorted((low, high, t) for members, t in out for low, high in members.ranges))
        for out in steps.values()
    )
    return Dfa(edges, bytes(state in accepting for state in steps))


JSON_RULES: Mapping[str, Node] = MappingProxyType(
    {
        "json_value": alternation(OBJECT, ARRAY, STRING, NUMBER, BOOLEAN, NULL),
        "json_object": concatenation(Literal("{"), optional(separated(MEMBER)), Literal("}")),
        "json_member": concatenation(STRING, Literal(":"), VALUE),
        "json_array": concatenation(Literal("["), optional(separated(VALUE)), Literal("]")),
        "json_string": Automaton(_string_automaton()),
        "json_number": Automaton(_number_automaton()),
        "json_integer": Automaton(_integer_automaton()),
    }
)
"""Every shared rule; a grammar carries them all, and the emitter leaves out what is not reached."""
