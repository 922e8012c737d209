"""GBNF texts made to explode: one family per known way, and mixtures of all."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Family = Callable[[Random, int], str]

COUNTS = (0, 1, 2, 3, 8, 31, 64, 100, 256, 1_000, 4_096, 10_000, 65_535, 10**7)
TERMS = (
    '"a"', '"b"', '""', '"ab"', "[a-z]", "[^a]", ".", "[0-9]", '"\\n"', '"上"', "[\\x00-\\x1f]",
    '[^"\\\\]', '"[" ', '"x" [yz]',
)  # fmt: skip


def bounds(source: Random) -> str:
    """Return a quantifier of any kind, or none."""
    low, high = sorted(source.choices(COUNTS, k=2))
    return source.choice(("", "", "*", "+", "?", f"{{{low},{high}}}", f"{{{high}}}", f"{{{low},}}"))


def _rules(source: Random, size: int, body: Callable[[int, int], str]) -> str:
    """Return rules from a body per number, as many as fit."""
    count = max(1, size // (len(body(0, 2)) + 12))
    lines = [f"r{n} ::= {body(n, count)}" for n in range(count)]
    return "root ::= r0\n" + "\n".join(lines) + "\n"


def mixture(source: Random, size: int) -> str:
    """Return random rules that call each other anyhow."""
    count = max(1, min(size // 40, source.choice((3, 20, 200, 2_000))))
    share = max(8, size // count)

    def part(room: int, depth: int = 0) -> str:
        if room < 8 or depth > 30:
            if source.random() < 0.4:
                return f"r{source.randrange(count)}"
            return source.choice(TERMS) + bounds(source)
        parts = source.randint(2, 6)
        inner = [part(room // parts, depth + 1) for _ in range(parts)]
        joined = source.choice((" ", " | ")).join(inner)
        return f"({joined}){bounds(source)}" if source.random() < 0.5 else joined

    lines = [f"r{n} ::= {part(share)}" for n in range(count)]
    return "root ::= r0\n" + "\n".join(lines) + "\n"


def chain(source: Random, size: int) -> str:
    """Return rules that each lean on the next."""
    extra = source.choice(("", ' "a"', ' "a"?', ' | "b"', " [a-z]*"))
    return _rules(source, size, lambda n, k: f"r{n + 1}{extra}" if n < k - 1 else '"z"')


def cycle(source: Random, size: int) -> str:
    """Return rules in a circle."""
    step = source.choice(('"a"', "[a-z]", '"a"?', '"a" | "b"'))
    return _rules(source, size, lambda n, k: f"({step}) r{(n + 1) % k} | {step}")


def nullable_chain(source: Random, size: int) -> str:
    """Return rules of which all may be absent, called in rows."""
    return _rules(
        source, size, lambda n, k: f'r{(n + 1) % k}? r{(n + 7) % k}? r{(n * 3) % k}* | "a"'
    )


def powers(source: Random, size: int) -> str:
    """Return rules that repeat rules that repeat rules."""
    return _rules(
        source,
        min(size, source.choice((100, 400, 4_000))),
        lambda n, k: (
            f"r{n + 1}{bounds(source)} r{n + 1}" if n < k - 1 else "[a-z]" + bounds(source)
        ),
    )


def doubling(source: Random, size: int) -> str:
    """Return rules that each use the next one twice."""
    joint = source.choice((" ", " | ", ' "," '))
    return _rules(
        source, size, lambda n, k: joint.join([f"r{n + 1}"] * 2) if n < k - 1 else '"a" | "b"'
    )


def ambiguous(source: Random, size: int) -> str:
    """Return rules with many derivations of one text."""
    inner = " | ".join(f"root {t} root" for t in source.choices(TERMS, k=max(1, size // 20)))
    return f"root ::= {inner} | [a-z]\n"


def left_recursive(source: Random, size: int) -> str:
    """Return operators in levels, each recursive on its left."""
    return _rules(source, size, lambda n, k: f'r{n} "{n}" r{(n + 1) % k} | r{(n + 1) % k} | "a"')


def long_alternation(source: Random, size: int) -> str:
    """Return one rule of very many texts."""
    words: list[str] = []
    while 8 * len(words) < size:
        words.append('"' + "".join(source.choices("abcdef", k=source.randint(1, 8))) + '"')
    return "root ::= " + " | ".join(words) + source.choice(("", " | root root", " | [a-z]*")) + "\n"


def optional_row(source: Random, size: int) -> str:
    """Return parts in a row that may all be absent."""
    marks = source.choice(("?", "*", "{0,3}"))
    parts = source.choices(TERMS, k=min(size // 8, source.choice((100, 128, 130, 8_000))))
    return "root ::= " + " ".join(f"({part}){marks}" for part in parts) + "\n"


def deep_groups(source: Random, size: int) -> str:
    """Return groups in groups, with something beside each."""
    depth = min(size // 4, source.choice((30, 200, 255, 256, 257, 20_000)))
    opening = source.choice(("(", '("a" ', '("a" | ', "([a-z]* "))
    closing = ")" + source.choice(("", "?", "*", "+", "{2}", "{0,3}"))
    return f'root ::= {opening * depth}"b"{closing * depth}\n'


def counts(source: Random, size: int) -> str:
    """Return bounded repetitions in a row."""
    parts = [source.choice(TERMS) + bounds(source) for _ in range(max(1, size // 16))]
    return "root ::= " + " ".join(parts) + "\n"


def wrong_names(source: Random, size: int) -> str:
    """Return rules that are missing or said twice."""
    kind = source.choice(("missing", "twice", "root"))
    lines = [f'r{n} ::= "a" r{n if kind != "missing" else n + 10**6}' for n in range(size // 24)]
    if kind == "twice":
        lines.append(source.choice(lines or ["r0 ::= r0"]))
    return ("" if kind == "root" else 'root ::= "x"\n') + "\n".join(lines) + "\n"


def long_literal(source: Random, size: int) -> str:
    """Return one text, and comments."""
    text = "".join(source.choices("abc上é ", k=size // 2))
    return f'# {text}\nroot ::= "{text}"{source.choice(("", "*", "?"))} # {text}\n'


FAMILIES: dict[str, Family] = {
    f.__name__: f
    for f in (
        mixture, chain, cycle, nullable_chain, powers, doubling, ambiguous, left_recursive,
        long_alternation, optional_row, deep_groups, counts, wrong_names, long_literal,
    )
}  # fmt: skip
