"""The command as a process: what it imports, and what Ctrl-C leaves behind."""

import os
import pty
import signal
import subprocess
import sys
import textwrap

import httpx
import pytest

SCRIPT = """
import sys
from ninfer.cli.main import run_command
from ninfer.cli.services import Services
from support.answering import opening
sys.exit(run_command(sys.argv[1:], Services(opening({script!r}, fault={fault}))))
"""
SLOW = "lambda name: __import__('time').sleep(0.05) if name == 'decode' else None"


def start(*arguments: str, script: str = "abcdefghij" * 50, fault: str = SLOW):
    code = textwrap.dedent(SCRIPT).format(script=script, fault=fault)
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": "tests", "PATH": ""},
    )


def test_an_interrupted_run_keeps_its_output_and_exits_130():
    process = start("run", "--prompt", "x", "--greedy", "--max-new", "400")
    first = process.stdout.read(5)
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=20)
    answer = first + rest
    assert process.returncode == 130
    assert answer == (b"abcdefghij" * 50)[: len(answer)]
    assert 5 <= len(answer) < 400
    assert f"finish: cancelled, {len(answer)} tokens" in err.decode()


def test_a_reader_that_goes_away_ends_the_run_quietly():
    process = start("run", "--prompt", "x", "--greedy", "--max-new", "400")
    process.stdout.read(3)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=20) == 1
    assert b"Traceback" not in err


def test_serve_listens_until_it_is_signalled():
    server = start("serve", "--port", "0", "--model-id", "scripted", fault="None")
    line = server.stderr.readline().decode()
    assert line.startswith("serving scripted at http://127.0.0.1:")
    memory = server.stderr.readline().decode().rstrip()
    assert memory.startswith("memory: weights 0.0 MB, key-value pool 0.8 MB, recurrent states 0.0")
    assert memory.endswith("paused requests up to 536.9 MB, grammars up to 268.4 MB")
    assert httpx.get(line.split()[-1] + "/health").json() == {"status": "ok"}
    server.send_signal(signal.SIGTERM)
    _, err = server.communicate(timeout=20)
    assert server.returncode == 0
    assert err == b""


def test_a_benchmark_keeps_numbers_apart_from_progress():
    process = start("bench", "-p", "4", "-n", "2", "-r", "1", "-o", "csv", fault="None")
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert [line.split(b",")[0] for line in out.splitlines()] == [b"test", b"pp4", b"tg2"]
    assert err.startswith(b"pp4, none, 1 at once: prefill ")


@pytest.mark.parametrize(
    ("flags", "place"),
    [
        (["--max-concurrency", "9"], b"error: --max-concurrency: 9 is not in 1..8"),
        (["--host", "203.0.113.1"], b"error: --host 203.0.113.1 --port 8000: "),
        (["--frobnicate"], b"unrecognized arguments: --frobnicate"),
    ],
)
def test_bad_server_flags_exit_2(flags, place):
    server = start("serve", *flags, fault="None")
    _, err = server.communicate(timeout=20)
    assert server.returncode == 2
    assert place in err


def test_check_loads_no_tensor_library():
    code = (
        "import sys; from ninfer.cli.main import run_command;"
        "from ninfer.cli.services import Services;"
        "status = run_command(['check', '--choice', 'a'], Services(None));"
        "heavy = {'torch', 'transformers', 'xgrammar', 'sanic', 'numpy'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "answers: 1" in done.stdout


def test_a_load_shows_its_progress_on_a_terminal_only(tmp_path):
    code = (
        "from ninfer.cli.engine import load_progress as load\n"
        "from types import SimpleNamespace as Record\n"
        "STAGE = type('Stage', (), {'value': 'convert'})\n"
        "with load() as show:\n"
        "    if show is None: print('quiet')\n"
        "    else: show(Record(stage=STAGE, done=3, total=10)); print('shown')\n"
    )
    controller, terminal = pty.openpty()
    with os.fdopen(terminal, "wb", buffering=0) as stderr:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=stderr, check=True
        )
        seen = os.read(controller, 65536)
    os.close(controller)
    assert done.stdout == b"shown\n"
    assert b"convert" in seen
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (piped.stdout, piped.stderr) == (b"quiet\n", b"")
