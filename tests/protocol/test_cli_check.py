"""``ninfer check``: what a constraint allows, or where it is refused; no model involved."""

import json

import pytest

from ninfer.cli.main import run_command
from ninfer.cli.services import Services


def no_engine(model, options):
    raise AssertionError("check opens no engine")


@pytest.fixture
def check(capsysbinary):
    def run(*arguments: str) -> tuple[int, str, str]:
        status = run_command(["check", *arguments], Services(no_engine))
        captured = capsysbinary.readouterr()
        return status, captured.out.decode(), captured.err.decode()

    return run


def checked(check, *arguments: str) -> dict:
    status, out, _ = check(*arguments, "--json")
    assert status == 0
    return json.loads(out)


def test_a_choice_is_counted_without_repetitions(check):
    record = checked(check, "--choice", "b", "--choice", "a", "--choice", "b")
    assert record["kind"] == "choice"
    assert record["answer_count"] == 2
    assert sorted(record["samples"]) == ["a", "b"]
    assert record["empty_answer"] is False
    assert record["compiled_bytes"] > 0


def test_the_empty_choice_allows_exactly_the_empty_answer(check):
    status, out, err = check("--choice", "")
    assert (status, err) == (0, "")
    assert "answers: 1\n" in out
    assert "empty answer: allowed\n" in out
    assert 'for example: ""\n' in out


@pytest.mark.parametrize(
    ("expression", "count", "empty"),
    [("", 1, True), ("[ab]{1,2}", 6, False), ("a?(b|c)?", 6, True), ("上|海", 2, False)],
)
def test_a_finite_regex_is_counted(check, expression, count, empty):
    record = checked(check, "--regex", expression)
    assert record["answer_count"] == count
    assert record["empty_answer"] is empty


def test_an_infinite_language_is_sampled_not_counted(check):
    record = checked(check, "--json-object")
    assert record["answer_count"] is None
    assert "{}" in record["samples"]
    assert all(isinstance(json.loads(sample), dict) for sample in record["samples"])


def test_a_language_with_an_endless_detour_still_has_examples(check):
    samples = checked(check, "--regex", "a*b")["samples"]
    assert samples
    assert all(sample.rstrip("b") == "a" * (len(sample) - 1) for sample in samples)


def test_samples_of_a_schema_satisfy_it(check, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text(
        '{"type":"object","properties":{"name":{"type":"string","minLength":2},'
        '"age":{"type":"integer","minimum":0,"maximum":120}},'
        '"required":["name","age"],"additionalProperties":false}'
    )
    record = checked(check, "--json-schema-file", str(schema))
    assert record["samples"]
    for sample in map(json.loads, record["samples"]):
        assert list(sample) == ["name", "age"]
        assert len(sample["name"]) >= 2
        assert 0 <= sample["age"] <= 120


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "error: check: name one constraint, such as --choice TEXT\n"),
        (("--regex", r"a\b"), "error: --regex: offset 1: "),
        (("--regex", "a", "--choice", "b"), "error: --regex and --choice: exclude each other\n"),
    ],
)
def test_a_refusal_exits_2_with_the_place(check, arguments, line):
    status, out, err = check(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith(line)


def test_a_grammar_error_has_line_and_column(check, tmp_path):
    grammar = tmp_path / "broken.gbnf"
    grammar.write_text('root ::= "a" |\n  missing\n')
    status, _, err = check("--grammar-file", str(grammar))
    assert status == 2
    assert err.startswith(f"error: --grammar-file {grammar}: line 2, column 3: ")


def test_token_terminals_are_left_to_a_model(check, tmp_path):
    grammar = tmp_path / "tokens.gbnf"
    grammar.write_text('root ::= "Token(3)" [Token(] # Token(4)\n  | ExcludeToken (5)\n')
    status, _, err = check("--grammar-file", str(grammar))
    assert status == 2
    assert err.startswith(f"error: --grammar-file {grammar}: line 2, column 5: ExcludeToken names")
    grammar.write_text('root ::= "Token(3)" [Token(] # Token(4)\n')
    assert check("--grammar-file", str(grammar))[0] == 0


def test_an_unsatisfiable_schema_is_refused(check, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text('{"type":"string","minLength":3,"maxLength":2}')
    status, _, err = check("--json-schema-file", str(schema))
    assert status == 2
    assert err.startswith(f"error: --json-schema-file {schema}: ")
