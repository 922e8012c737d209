"""``ninfer run`` over a scripted engine: bytes, reports, exit statuses."""

import json

import pytest

from support.answering import THINKING_TEMPLATE
from support.command import Outcome, outcome_of


@pytest.fixture
def ninfer(capsysbinary):
    def run(*arguments: str, script="Paris is a city.", **program) -> Outcome:
        return outcome_of(capsysbinary, *arguments, script=script, **program)

    return run


def test_a_free_answer_reaches_stdout_byte_for_byte(ninfer):
    script = "Größe: 上海\n\ttab, no newline at the end "
    outcome = ninfer("run", "--prompt", "Where?", "--greedy", script=script)
    assert outcome.status == 0
    assert outcome.out == script.encode()
    assert "finish: stop_token" in outcome.err
    assert "constraint" not in outcome.err


@pytest.mark.parametrize(
    ("flags", "answers"),
    [
        (["--choice", "yes", "--choice", "no"], {b"yes", b"no"}),
        (["--regex", "a{3}"], {b"aaa"}),
        (["--choice", ""], {b""}),
    ],
)
def test_a_constrained_answer_is_in_the_language(ninfer, flags, answers):
    outcome = ninfer("run", "--prompt", "Well?", *flags)
    assert outcome.status == 0
    assert outcome.out in answers
    assert "constraint: content, complete, terminated, cache built" in outcome.err


def test_a_schema_file_is_read_and_enforced(ninfer, tmp_path):
    schema = tmp_path / "person.json"
    schema.write_text(
        '{"type":"object","properties":{"n":{"type":"boolean"}},'
        '"required":["n"],"additionalProperties":false}'
    )
    outcome = ninfer("run", "--prompt", "Describe.", "--json-schema-file", str(schema))
    assert outcome.status == 0
    assert json.loads(outcome.out) in ({"n": True}, {"n": False})


def test_a_grammar_file_keeps_its_line_ends(ninfer, tmp_path):
    grammar = tmp_path / "answer.gbnf"
    grammar.write_bytes(b'root ::= "a"\r\n  | "b"\r\n')
    outcome = ninfer("run", "--prompt", "Which?", "--grammar-file", str(grammar))
    assert outcome.status == 0
    assert outcome.out in (b"a", b"b")


def test_json_output_is_one_object_with_the_report(ninfer):
    outcome = ninfer("run", "--prompt", "Well?", "--choice", "yes", "--choice", "no", "--json")
    record = json.loads(outcome.out)
    assert record["content"] in ("yes", "no")
    assert record["finish_reason"] == "stop_token"
    assert record["constraint"]["terminated"] is True
    assert record["constraint"]["cache"] == "built"
    assert len(record["generated_token_ids"]) == len(record["content"]) + 1
    assert outcome.err == ""


def test_token_ids_are_reported_on_request(ninfer):
    outcome = ninfer("run", "--prompt", "x", "--choice", "ab", "--print-token-ids")
    assert outcome.out == b"ab"
    assert "token ids: 97 98 256\n" in outcome.err
    assert "token ids" not in ninfer("run", "--prompt", "x", "--choice", "ab").err


def test_reasoning_goes_to_stderr(ninfer):
    outcome = ninfer(
        "run", "--prompt", "Why?", script="Hmm.\n</think>\n\nBecause.", template=THINKING_TEMPLATE
    )
    assert outcome.out == b"Because."
    assert "Hmm." in outcome.err


def test_the_output_limit_is_reported_not_hidden(ninfer):
    outcome = ninfer("run", "--prompt", "Count.", "--max-new", "4", "--greedy", script="123456789")
    assert outcome.status == 0
    assert outcome.out == b"1234"
    assert "finish: output_limit, 4 tokens" in outcome.err


def test_an_interrupted_constraint_is_incomplete(ninfer):
    outcome = ninfer("run", "--prompt", "x", "--max-new", "2", "--choice", "abcdef")
    assert outcome.out == b"ab"
    assert "constraint: content, incomplete, not terminated" in outcome.err


def test_a_stop_string_ends_the_answer_before_itself(ninfer):
    outcome = ninfer("run", "--prompt", "x", "--stop", "END", "--greedy", script="one END two")
    assert outcome.out == b"one "
    assert "stopped at 'END'" in outcome.err


def test_the_same_seed_gives_the_same_answer(ninfer):
    flags = ("run", "--prompt", "x", "--regex", "[a-z]{12}", "--seed", "5", "--temperature", "1.5")
    first, second = ninfer(*flags), ninfer(*flags)
    other = ninfer(*flags[:-3], "6", "--temperature", "1.5")
    assert first.out == second.out
    assert first.out != other.out


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--regex", "(?=a)b"], "error: --regex: offset 0: "),
        (["--choice", "a", "--regex", "a"], "error: --regex and --choice: exclude each other"),
        (["--json-object", "--grammar-file", "g"], "error: --grammar-file and --json-object: "),
        (
            ["--grammar-file", "/nonexistent/g"],
            "error: --grammar-file /nonexistent/g: No such",
        ),
        (["--temperature", "3"], "error: --temperature: 3.0 is not in [0, 2]"),
        (["--top-p", "nan"], "error: --top-p: nan is not in [0, 1]"),
        (["--greedy", "--temperature", "1"], "error: --greedy and --temperature: exclude"),
        (["--choice", "a", "--stop", "b"], "error: --choice and --stop: "),
        (["--max-context", "0"], "error: --max-context: "),
        (["--speculate", "mtp"], "error: No such option: --speculate"),
        (["--reasoning-effort", "high"], "error: --reasoning-effort: "),
        (["--thinking-budget", "5"], "error: --thinking-budget: the model does not think"),
        (["--messages", "x.json"], "error: --prompt and --messages: exactly one is required"),
        (["--stop", ""], "error: --stop[0]: an empty text"),
    ],
)
def test_bad_input_exits_2_and_names_the_option(ninfer, flags, line):
    outcome = ninfer("run", "--prompt", "x", *flags)
    assert outcome.status == 2
    assert outcome.out == b""
    assert outcome.err.startswith(line)
    assert outcome.err.count("\n") == 1


def test_a_file_that_is_not_utf8_is_named_with_the_byte(ninfer, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_bytes(b'{"a":\xff}')
    outcome = ninfer("run", "--prompt", "x", "--json-schema-file", str(schema))
    assert outcome.status == 2
    assert outcome.err == f"error: --json-schema-file {schema}: byte 5 is not UTF-8\n"


def test_a_schema_error_names_file_and_pointer(ninfer, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text('{"type":"object","properties":{"a":{"type":"text"}}}')
    outcome = ninfer("run", "--prompt", "x", "--json-schema-file", str(schema))
    assert outcome.status == 2
    place = f"error: --json-schema-file {schema}: /properties/a/type: "
    assert outcome.err.startswith(place)


def test_json_output_holds_the_refusal_too(ninfer):
    outcome = ninfer("run", "--prompt", "x", "--regex", "(?=a)", "--json")
    assert outcome.status == 2
    error = json.loads(outcome.out)["error"]
    assert error["code"] == "invalid_regex"
    assert error["place"] == "--regex: offset 0"


def test_a_prompt_that_does_not_fit_exits_2(ninfer):
    outcome = ninfer("run", "--prompt", "x" * 3000)
    assert outcome.status == 2
    assert "the context holds" in outcome.err


def test_a_conversation_comes_from_a_file(ninfer, tmp_path):
    path = tmp_path / "talk.json"
    path.write_text(
        json.dumps(
            [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Who?"}]},
                {"role": "assistant", "content": "Me."},
                {"role": "user", "content": "Again?"},
            ]
        )
    )
    seen = []

    def script(conversation: str) -> str:
        seen.append(conversation)
        return "You."

    outcome = ninfer("run", "--messages", str(path), "--greedy", script=script)
    assert outcome.out == b"You."
    assert seen[0] == "system\nBe brief.\nuser\nWho?\nassistant\nMe.\nuser\nAgain?\nassistant\n"


def test_tools_come_from_the_file_and_calls_are_reported(ninfer, tmp_path):
    path = tmp_path / "talk.json"
    parameters = {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"]}
    function = {"name": "lucky", "strict": True, "parameters": parameters}
    function["parameters"]["additionalProperties"] = False
    tools = [{"type": "function", "function": function}]
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "x"}], "tools": tools}))
    script = (
        "<tool_call>\n<function=lucky>\n<parameter=n>\n7\n</parameter>\n</function>\n</tool_call>"
    )
    outcome = ninfer("run", "--messages", str(path), "--greedy", script=script)
    assert outcome.out == b""
    assert 'call: lucky {"n": 7}' in outcome.err
    record = json.loads(ninfer("run", "--messages", str(path), "--json", script=script).out)
    assert record["tool_calls"] == [{"name": "lucky", "arguments": '{"n": 7}'}]
    assert record["constraint"]["branch"] == "tools"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", ": the body is not JSON"),
        ('[{"role": "robot", "content": "x"}]', ": messages[0].role: "),
        ('{"messages": [{"role": "user", "content": 5}]}', ": messages[0].content: "),
        ('{"tools": []}', ": messages: required field is missing"),
    ],
)
def test_a_bad_conversation_is_named_with_its_place(ninfer, tmp_path, text, place):
    path = tmp_path / "talk.json"
    path.write_text(text)
    outcome = ninfer("run", "--messages", str(path))
    assert outcome.status == 2
    assert outcome.err.startswith(f"error: --messages {path}{place}")


def test_thinking_can_be_switched_off(ninfer):
    flags = ("run", "--prompt", "Why?", "--greedy")
    script = "Hmm.\n</think>\n\nBecause."
    thought = ninfer(*flags, script=script, template=THINKING_TEMPLATE)
    assert "Hmm." in thought.err
    direct = ninfer(*flags, "--no-thinking", script="Because.", template=THINKING_TEMPLATE)
    assert direct.out == thought.out == b"Because."
    assert "Hmm." not in direct.err


def test_a_missing_prompt_exits_2(ninfer):
    outcome = ninfer("run")
    assert outcome.status == 2
    assert "--prompt" in outcome.err


def test_a_failing_engine_exits_1(ninfer):
    def fault(name: str) -> None:
        if name == "decode":
            raise OSError("the device is gone")

    outcome = ninfer("run", "--prompt", "x", "--greedy", fault=fault)
    assert outcome.status == 1
    assert outcome.out == b"P"
    assert outcome.err.startswith("\nerror: the engine stopped")


@pytest.mark.parametrize("count", ["0", "1025"])
def test_threads_are_at_least_one_and_no_more_than_machines_start(ninfer, count):
    outcome = ninfer("run", "--prompt", "Hi", "--threads", count)
    assert outcome.status == 2
    assert outcome.err.startswith("error: --threads: ")


@pytest.mark.parametrize(
    "flags", [["--draft-tokens", "3"], ["--draft-model", "somewhere"], ["--spec", "guess"]]
)
def test_drafting_flags_that_mean_nothing_are_refused(ninfer, flags):
    outcome = ninfer("run", "--prompt", "Hi", *flags)
    assert outcome.status == 2
    assert flags[0] in outcome.err
