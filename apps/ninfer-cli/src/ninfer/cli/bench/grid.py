"""Which tests a benchmark runs: prompt lengths, answer lengths, pairs, constraints, batches."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from ninfer.cli.bench.workload import ConstraintName
from ninfer.cli.failure import InputError

SHORT_PROMPT_TOKENS = 8
"""The prompt of tests that only measure generation."""
MOST_ROWS = 8


class LengthTest(NamedTuple):
    """One pair of lengths; the first output token belongs to the prompt's own computation."""

    name: str
    prompt_tokens: int
    output_tokens: int

    @property
    def context_tokens(self) -> int:
        """Return the tokens that one request takes."""
        return self.prompt_tokens + self.output_tokens


class Case(NamedTuple):
    """One test under one constraint with so many requests at once."""

    test: LengthTest
    constraint: ConstraintName
    rows: int

    @property
    def label(self) -> str:
        """Return the case in a few words."""
        return f"{self.test.name}, {self.constraint.value}, {self.rows} at once"


def length_tests(prompts: str, outputs: str, pairs: str) -> list[LengthTest]:
    """Return the tests of ``-p``, ``-n`` and ``-pg``, in that order, each once.

    Raises: InputError — a list has something else than whole positive numbers, or all are empty.
    """
    tests = [LengthTest(f"pp{p}", p, 1) for p in numbers("-p", prompts)]
    tests += [LengthTest(f"tg{g}", SHORT_PROMPT_TOKENS, g + 1) for g in numbers("-n", outputs)]
    for pair in filter(None, pairs.split(";")):
        lengths = numbers("-pg", pair)
        if len(lengths) != 2:
            raise InputError("-pg", f"{pair!r} is not a pair P,G")
        prompt, output = lengths
        tests.append(LengthTest(f"pp{prompt}+tg{output}", prompt, output + 1))
    if not tests:
        raise InputError("-p, -n and -pg", "no test is left")
    return list(dict.fromkeys(tests))


def numbers(option: str, text: str, most: int | None = None) -> list[int]:
    """Return the positive numbers of a comma-separated list; an empty text has none.

    Raises: InputError — something else stands there, or a number is over ``most``.
    """
    found = []
    for part in filter(None, (item.strip() for item in text.split(","))):
        number = int(part) if part.isascii() and part.isdecimal() else 0
        if number < 1 or (most is not None and number > most):
            bounds = "a positive whole number" if most is None else f"in 1..{most}"
            raise InputError(option, f"{part!r} is not {bounds}")
        found.append(number)
    return found


def cases(
    tests: list[LengthTest], constraints: list[ConstraintName], rows: list[int]
) -> list[Case]:
    """Return every combination, tests outermost."""
    return [Case(*chosen) for chosen in product(tests, constraints, rows)]
