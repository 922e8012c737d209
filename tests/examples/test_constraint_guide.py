"""The verdicts and examples of docs/constraints.md are the program's own."""

import re
from pathlib import Path

import pytest

from ninfer.contract import InvalidRegex, OutputConstraint
from ninfer.text import ConstraintCompiler
from support.sessions import byte_vocabulary

TEXT = (Path(__file__).parents[2] / "docs" / "constraints.md").read_text()
ROWS = re.findall(r"^\| `(.+)` \| (accepted|offset (\d+): .*) \|$", TEXT, re.MULTILINE)


@pytest.fixture(scope="module")
def compiler():
    return ConstraintCompiler(byte_vocabulary())


def test_the_table_has_both_verdicts():
    verdicts = {verdict == "accepted" for _, verdict, _ in ROWS}
    assert verdicts == {True, False}


@pytest.mark.parametrize(("cell", "verdict", "offset"), ROWS)
def test_an_expression_is_judged_as_the_guide_says(compiler, cell, verdict, offset):
    constraint = OutputConstraint.regex(cell.replace(r"\|", "|"))
    if verdict == "accepted":
        compiler.compile(constraint)
        return
    with pytest.raises(InvalidRegex) as caught:
        compiler.compile(constraint)
    assert caught.value.location.offset == int(offset)


def test_the_grammar_accepts_what_it_looks_like(compiler):
    (source,) = re.findall(r"^```gbnf\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    compiled = compiler.compile(OutputConstraint.grammar(source))
    matcher = compiler.matcher(compiled)
    text = b"{a=1,b={c=23}}"
    assert matcher.feed(text) == len(text)
    assert matcher.can_end
    wrong = compiler.matcher(compiled)
    assert wrong.feed(b"{a=}") == 3
