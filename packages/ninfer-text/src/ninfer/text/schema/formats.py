"""The formats that are enforced, each as a regular expression of whole strings.

``docs/json-schema.md`` says what each one means. A name outside the tables is refused.
"""

from __future__ import annotations

from functools import lru_cache

from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.subset import compile_expression
from ninfer.text.regex import whole_expression
from ninfer.text.schema.numbers import ANY_NUMBER, NumberSet, Whole
from ninfer.text.schema.strings import Atom, AtomKind

_YEAR = "(\\d{3}[1-9]|\\d\\d[1-9]0|\\d[1-9]00|[1-9]000)"
_LEAP = "(\\d\\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_DAY = (
    "((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)"
    "|02-(0[1-9]|1\\d|2[0-8]))"
)
_DATE = f"({_YEAR}-{_DAY}|{_LEAP}-02-29)"
_TIME = "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d+)?(Z|[+\\-]([01]\\d|2[0-3]):[0-5]\\d)"
_BYTE = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
_IPV4 = f"{_BYTE}(\\.{_BYTE}){{3}}"
_LETTER = "[a-zA-Z0-9]"
_LABEL = f"{_LETTER}([a-zA-Z0-9\\-]{{0,28}}{_LETTER})?"
_HOSTNAME = f"({_LETTER}([a-zA-Z0-9\\-]{{0,61}}{_LETTER})?|{_LABEL}(\\.{_LABEL}){{0,7}})"
_ATEXT = "[a-zA-Z0-9!#$%&'*+\\-/=?^_`{|}~]"
_EMAIL = f"({_ATEXT}{{1,64}}|{_ATEXT}(\\.?{_ATEXT}){{0,31}})@{_HOSTNAME}"
_UUID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_POINTER = "(/([^~/]|~[01])*)*"
_DURATION_TIME = "T(\\d+H(\\d+M(\\d+S)?)?|\\d+M(\\d+S)?|\\d+S)"
_DURATION_DATE = "(\\d+Y(\\d+M(\\d+D)?)?|\\d+M(\\d+D)?|\\d+D)"
_DURATION = f"P({_DURATION_DATE}({_DURATION_TIME})?|{_DURATION_TIME}|\\d+W)"

_HEX = "[0-9a-fA-F]"
_ENCODED = f"%{_HEX}{_HEX}"
_UNRESERVED = "a-zA-Z0-9\\-._~"
_SUBDELIMS = "!$&'()*+,;="
_PCHAR = f"([{_UNRESERVED}{_SUBDELIMS}:@]|{_ENCODED})"
_REGNAME = f"([{_UNRESERVED}{_SUBDELIMS}]|{_ENCODED})*"
_USERINFO = f"([{_UNRESERVED}{_SUBDELIMS}:]|{_ENCODED})*"


def _ipv6() -> str:
    group = f"{_HEX}{{1,4}}"
    last = f"({group}:{group}|{_IPV4})"
    forms = [f"({group}:){{6}}{last}", f"::({group}:){{5}}{last}"]
    for before in range(1, 6):
        head = f"({group}(:{group}){{0,{before - 1}}})?"
        forms.append(f"{head}::({group}:){{{5 - before}}}{last}")
    forms.append(f"({group}(:{group}){{0,5}})?::{group}")
    forms.append(f"({group}(:{group}){{0,6}})?::")
    return "(" + "|".join(forms) + ")"


_IPV6 = _ipv6()
_HOST = f"(\\[{_IPV6}\\]|{_REGNAME})"
_AUTHORITY = f"({_USERINFO}@)?{_HOST}(:\\d*)?"
_QUERY = f"({_PCHAR}|[/?])*"
_SEGMENTS = f"(/{_PCHAR}*)*"
_ROOTED = f"//{_AUTHORITY}{_SEGMENTS}|/({_PCHAR}+{_SEGMENTS})?"
_TAIL = f"(\\?{_QUERY})?(#{_QUERY})?"
_URI = f"[a-zA-Z][a-zA-Z0-9+\\-.]*:({_ROOTED}|{_PCHAR}+{_SEGMENTS}|){_TAIL}"
_NO_COLON = f"([{_UNRESERVED}{_SUBDELIMS}@]|{_ENCODED})+"
_URI_REFERENCE = f"({_URI}|({_ROOTED}|{_NO_COLON}{_SEGMENTS}|){_TAIL})"

STRING_FORMATS: dict[str, str] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": _DURATION,
    "email": _EMAIL,
    "hostname": _HOSTNAME,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uri": _URI,
    "uri-reference": _URI_REFERENCE,
    "uuid": _UUID,
    "json-pointer": _POINTER,
    "relative-json-pointer": f"(0|[1-9]\\d*)(#|{_POINTER})",
}

SHORT_CHARACTERS = 63
_ANY_LABEL = f"{_LETTER}([a-zA-Z0-9\\-]*{_LETTER})?"
_ANY_HOSTNAME = f"{_ANY_LABEL}(\\.{_ANY_LABEL})*"
SHORT_FORMATS: dict[str, str] = {
    "email": f"{_ATEXT}+(\\.{_ATEXT}+)*@{_ANY_HOSTNAME}",
    "hostname": _ANY_HOSTNAME,
}
"""The same languages among texts of at most ``SHORT_CHARACTERS``, where no part is too long."""

NUMBER_FORMATS: dict[str, NumberSet] = {
    "int32": NumberSet((Whole(-(1 << 31), (1 << 31) - 1),), ANY_NUMBER.betweens),
    "int64": ANY_NUMBER,
    "float": ANY_NUMBER,
    "double": ANY_NUMBER,
}


OUTSIDE_FORMATS = frozenset("regex iri iri-reference idn-email idn-hostname uri-template".split())
"""Formats of the standard that are not enforced, and therefore always refused."""


def is_enforced_format(name: str) -> bool:
    """Return whether a format is enforced."""
    return name in STRING_FORMATS or name in NUMBER_FORMATS


def string_format(name: str) -> set[Atom]:
    """Return what a format says about strings."""
    return {Atom(AtomKind.FORMAT, name)} if name in STRING_FORMATS else set()


def number_format(name: str) -> NumberSet:
    """Return what a format says about numbers."""
    return NUMBER_FORMATS.get(name, ANY_NUMBER)


@lru_cache(maxsize=2 * len(STRING_FORMATS))
def format_automaton(name: str, *, short: bool = False) -> Dfa:
    """Return the automaton of a string format, or of its simpler form for short texts."""
    table = SHORT_FORMATS if short else STRING_FORMATS
    return compile_expression(whole_expression(table[name]))
