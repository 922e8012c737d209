"""A refusal names what the user typed, in whichever option or file, and never fails itself."""

import json
import os
import subprocess
import sys

import pytest

from support.command import Outcome, outcome_of

ASKED = {"role": "user", "content": "x"}
BAD_CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "[]"}}],
}
REFUSED = {"type": "object", "properties": {"a": {"type": "text"}}, "additionalProperties": False}


def tool(name: str, **function) -> dict:
    return {"type": "function", "function": {"name": name} | function}


@pytest.fixture
def ninfer(capsysbinary):
    def run(*arguments: str) -> Outcome:
        return outcome_of(capsysbinary, *arguments, script="hi")

    return run


FILES = [
    ([ASKED, BAD_CALL], [], ": messages[1].tool_calls[0].function.arguments: "),
    ([ASKED, {"role": "user", "content": 5}], [], ": messages[1].content: "),
    ({"messages": [{**ASKED, "tool_calls": BAD_CALL["tool_calls"][:0]}, {}]}, [], ": messages[1]."),
    ({"messages": [ASKED], "tools": [tool("a"), tool("a")]}, [], ": tools[1].function: "),
    (
        {"messages": [ASKED], "tools": [tool("a"), tool("b c")]},
        ["--json-object"],
        ": tools[1].function: ",
    ),
    (
        {"messages": [ASKED], "tools": [tool("a"), tool("b", strict=True, parameters=REFUSED)]},
        ["--json-object"],
        ": tools[1].function.parameters/properties/a/type: ",
    ),
    ([{"role": "user", "content": "x" * 3000}], [], ": the prompt has "),
]


@pytest.mark.parametrize("system", [[], ["--system", "s"]])
@pytest.mark.parametrize(("conversation", "flags", "place"), FILES)
def test_a_refused_conversation_is_named_by_its_file(
    ninfer, tmp_path, conversation, flags, place, system
):
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(conversation))
    outcome = ninfer("run", "--messages", str(path), *flags, *system)
    assert outcome.status == 2
    assert outcome.err.startswith(f"error: --messages {path}{place}")
    assert outcome.err.count("\n") == 1


def test_an_empty_conversation_is_named_by_its_file(ninfer, tmp_path):
    path = tmp_path / "talk.json"
    path.write_text("[]")
    outcome = ninfer("run", "--messages", str(path))
    assert outcome.err == f"error: --messages {path}: there are no messages\n"


def test_a_choice_beside_tools_names_both_options(ninfer, tmp_path):
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"messages": [ASKED], "tools": [tool("a")]}))
    outcome = ninfer("run", "--messages", str(path), "--choice", "a")
    assert outcome.err.startswith(f"error: --choice and --messages {path}: ")


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--stop", "a", "--stop", ""], "error: --stop[1]: "),
        (["--stop", "a", "--reasoning-stop", ""], "error: --reasoning-stop[0]: "),
        (["--reasoning-stop", ""], "error: --reasoning-stop[0]: "),
        (["--reasoning-stop", "a", "--choice", "a"], "error: --choice and --reasoning-stop: "),
        (["--thinking-budget", "0"], "error: --thinking-budget: "),
    ],
)
def test_a_refused_stop_or_budget_is_named_by_its_own_flag(ninfer, flags, line):
    outcome = ninfer("run", "--prompt", "x", *flags)
    assert outcome.status == 2
    assert outcome.err.startswith(line)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--json", "--prompt", "x", "--max-new", "-1"],
        ["run", "--prompt", "x", "--nope", "--json"],
        ["check", "--choice", "a", "--json", "extra"],
    ],
)
def test_a_command_line_that_cannot_be_read_is_a_record_too(ninfer, arguments):
    outcome = ninfer(*arguments)
    assert outcome.status == 2
    assert json.loads(outcome.out)["error"]["code"] == "invalid_option"
    assert outcome.err.startswith("error: ")


def test_without_a_command_the_help_is_the_whole_output(ninfer):
    outcome = ninfer()
    assert outcome.status == 2
    assert b"Usage: ninfer" in outcome.out + outcome.err.encode()
    assert "error:" not in outcome.err


def as_process(arguments: list[str], **environment: str) -> subprocess.CompletedProcess[bytes]:
    code = (
        "import sys; from ninfer.cli.main import run_command;"
        "from ninfer.cli.services import Services;"
        "sys.exit(run_command(sys.argv[1:], Services(None)))"
    )
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, env=os.environ | environment)


def test_bytes_of_a_path_that_are_not_utf8_are_escaped(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")
    done = as_process(["check", "--json-schema-file", path, "--json"])
    assert done.returncode == 2, done.stderr
    assert json.loads(done.stdout)["error"]["place"] == f"--json-schema-file {path}"
    assert done.stderr.startswith(b"error: --json-schema-file ")


def test_examples_are_utf8_whatever_the_terminal_is():
    done = as_process(["check", "--choice", "上海"], PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "上海".encode() in done.stdout
