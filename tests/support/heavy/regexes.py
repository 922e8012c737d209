"""Expressions made to explode: one family per known way, and mixtures of all."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Family = Callable[[Random, int], str]

ATOMS = (
    "a", "b", "xy", ".", r"\d", r"\w", r"\s", r"\S", r"\D", r"\W", "[a-z]", "[^a]", "[a-c]",
    r"[\w\-.]", "[^\"\\\\]", "[\u3040-\u30ff]", "é", "😀", "[a-f0-9]", "[^\\n]", r"\.", "\u00df",
)  # fmt: skip
COUNTS = (0, 1, 2, 3, 5, 8, 15, 31, 32, 33, 64, 100, 255, 256, 1_000, 4_096, 8_192, 65_535, 10**6)


def bounds(source: Random) -> str:
    """Return a quantifier of any kind."""
    low, high = sorted(source.choices(COUNTS, k=2))
    kinds = ("*", "+", "?", f"{{{high}}}", f"{{{low},{high}}}", f"{{{low},}}", f"{{0,{high}}}")
    return source.choice(kinds) + source.choice(("", "", "?"))


def any_class(source: Random, ranges: int) -> str:
    """Return a class of many ranges that do not touch."""
    points = sorted(source.sample(range(0x100, 0xD000, 2), 2 * ranges))
    pairs = zip(points[::2], points[1::2], strict=True)
    body = "".join(f"{chr(a)}-{chr(b)}" for a, b in pairs)
    return f"[{source.choice(('', '^'))}{body}]"


def mixture(source: Random, size: int, depth: int = 0) -> str:
    """Return a random expression of about so many characters."""
    if size < 8 or depth > 60:
        return source.choice(ATOMS) + (bounds(source) if source.random() < 0.3 else "")
    match source.randrange(6):
        case 0:
            parts = source.randint(2, 12)
            inner = (mixture(source, size // parts, depth + 1) for _ in range(parts))
            return "(" + "|".join(inner) + ")"
        case 1:
            return f"({mixture(source, size - 8, depth + 1)}){bounds(source)}"
        case 2:
            return any_class(source, max(1, min(size // 8, 400))) + bounds(source)
        case _:
            parts = source.randint(2, 8)
            return "".join(mixture(source, size // parts, depth + 1) for _ in range(parts))


def _repeated(source: Random, size: int, make: Callable[[], str], joint: str = "") -> str:
    parts, length = [], 0
    while length < size:
        parts.append(make())
        length += len(parts[-1]) + len(joint)
    return joint.join(parts)


def _letters(source: Random, most: int) -> str:
    return "".join(source.choices("abcdefgh", k=source.randint(1, most)))


def nested_counts(source: Random, size: int) -> str:
    """Return counts of counts of counts."""
    text = source.choice(ATOMS)
    for _ in range(source.randint(2, min(90, 2 + size // 8))):
        text = f"({text}{source.choice(('', 'b', '?', 'c*'))}){bounds(source)}"
    return text


def words(source: Random, size: int) -> str:
    """Return alternatives that are plain words."""
    return _repeated(source, size, lambda: _letters(source, 14), "|")


def words_with_an_ending(source: Random, size: int) -> str:
    """Return words in front of one ending that counts."""
    ending = source.choice(ATOMS) + bounds(source)
    return f"({words(source, size)}){ending}"


def classes_side_by_side(source: Random, size: int) -> str:
    """Return alternatives of classes that overlap."""
    ranges = source.choice((1, 5, 50))
    return _repeated(source, size, lambda: any_class(source, ranges) + bounds(source), "|")


def huge_class(source: Random, size: int) -> str:
    """Return few classes of very many ranges."""
    ranges = max(1, min(size // 8, 8_000))
    parts = (any_class(source, ranges) for _ in range(source.choice((1, 2, 4))))
    return "".join(part + bounds(source) for part in parts)


def row_of_classes(source: Random, size: int) -> str:
    """Return one class after another, none of them the same."""
    return _repeated(source, size, lambda: any_class(source, source.randint(1, 20)))


def optional_row(source: Random, size: int) -> str:
    """Return parts in a row that may all be absent."""
    marks = source.choice(("?", "*", "{0,3}"))
    return _repeated(source, size, lambda: source.choice(ATOMS) + marks)


def memory(source: Random, size: int) -> str:
    """Return expressions that must remember many places."""
    count = source.choice((8, 10, 12, 13, 14, 16, 20, 100, 1_000))
    forms = (
        f"[ab]*a[ab]{{{count}}}", f".*a.{{{count}}}", f"(.*a){{{count}}}", f".*(a.{{0,{count}}}b)*",
        f"(a?){{{count}}}a{{{count}}}", f"([ab]*c[ab]{{{count}}}|d)*", f"(a|b|ab)*c.{{0,{count}}}",
    )  # fmt: skip
    return "|".join(source.choices(forms, k=max(1, min(size // 16, source.randint(1, 6)))))


def backtracking(source: Random, size: int) -> str:
    """Return what hangs engines that try alternatives one by one."""
    bombs = ("(a*)*b", "(a|a)*", "(a|aa)+", "(x+x+)+y", r"(.*)*\d", "(([a-z])+.)+[A-Z]", "(a?)*?b")
    return _repeated(source, size, lambda: source.choice(bombs))


def windows(source: Random, size: int) -> str:
    """Return bounded gaps between marks."""
    return _repeated(source, size, lambda: source.choice(ATOMS) + "." + bounds(source))


def deep_groups(source: Random, size: int) -> str:
    """Return groups in groups, with something beside each."""
    depth = min(size // 6, source.choice((20, 60, 99, 100, 101, 20_000)))
    opening = source.choice(("(", "(?:", "(a|", "(a*"))
    return opening * depth + "b" + (")" + source.choice(("", "?", "*", "+"))) * depth


def stars_in_a_row(source: Random, size: int) -> str:
    """Return loops one after another, each a way past all others."""
    return _repeated(source, size, lambda: source.choice(ATOMS[:12]) + source.choice("*+"))


def long_literal(source: Random, size: int) -> str:
    """Return nothing but a text."""
    return "".join(source.choices("abc \u4e0a\u6d77é", k=size))


FAMILIES: dict[str, Family] = {
    f.__name__: f
    for f in (
        mixture, nested_counts, words, words_with_an_ending, classes_side_by_side, huge_class,
        row_of_classes, optional_row, memory, backtracking, windows, deep_groups, stars_in_a_row,
        long_literal,
    )
}  # fmt: skip
