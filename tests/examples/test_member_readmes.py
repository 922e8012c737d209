"""The example in each member's README runs as it stands."""

import ast
import asyncio
import json
import re
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from support.answering import opening, scripted_engine, tokenizer_json

ROOT = Path(__file__).parents[2]
MEMBERS = [*sorted((ROOT / "packages").glob("*")), *sorted((ROOT / "apps").glob("*"))]


def example(member: str) -> str:
    (path,) = (folder / "README.md" for folder in MEMBERS if folder.name == member)
    (source,) = re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)
    return source


def run(source: str, **names: object) -> dict:
    exec(source, names)
    return names


@pytest.mark.parametrize("member", MEMBERS, ids=lambda folder: folder.name)
def test_a_readme_is_short_and_says_what_its_member_owns(member):
    text = (member / "README.md").read_text()
    assert text.startswith(f"# {member.name}\n")
    assert len(text.splitlines()) <= 60
    assert "**Owns**" in text
    assert "**Does not own**" in text


@pytest.mark.parametrize("member", ["ninfer-contract", "ninfer-ops"])
def test_an_example_that_checks_itself(member):
    run(example(member))


def test_the_text_example_advances_its_matcher():
    tokenizer = Tokenizer.from_str(tokenizer_json())
    names = run(example("ninfer-text"), tokenizer=tokenizer, eos_ids=[256])
    assert names["taken"] == 3
    assert names["matcher"].can_end


def test_the_cli_example_prints_one_record(capsysbinary):
    names = run(example("ninfer-cli"), open_engine=opening("unused"))
    assert names["status"] == 0
    assert json.loads(capsysbinary.readouterr().out)["answer_count"] == 4


def test_the_gateway_example_gets_its_answer():
    code = compile(
        example("ninfer-gateway"), "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    with scripted_engine("perhaps") as engine:
        names = {"engine": engine}
        asyncio.run(eval(code, names))
    assert names["reply"].json()["choices"][0]["message"]["content"] in ("yes", "no")
