"""Importing ``ninfer.text`` and compiling a choice in a fresh process; bar: 0.3 s of CPU time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

BAR_SECONDS = 0.3

CODE = """
import json, time
start = time.process_time()
import ninfer.text
imported = time.process_time()
from ninfer.contract import OutputConstraint, TokenVocabulary
pieces = [bytes([b]) for b in range(256)] + [b""]
compiler = ninfer.text.ConstraintCompiler(TokenVocabulary.build(pieces, eos=[256]))
matcher = compiler.matcher(compiler.compile(OutputConstraint.choice(["yes", "no"])))
assert matcher.feed(b"yes") == 3
print(json.dumps([imported - start, time.process_time() - start]))
"""


def fresh_process() -> tuple[float, float]:
    """Return the CPU seconds of the import, and of the import and a choice."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, check=True)
    imported, ready = json.loads(done.stdout)
    return imported, ready


def test_a_fresh_process_is_ready_within_the_bar(benchmark):
    imported, ready = benchmark.pedantic(fresh_process, rounds=5)
    if not benchmark.enabled:
        pytest.skip("timings are compared only with benchmarks enabled")
    benchmark.extra_info.update(imported=imported, ready=ready)
    assert ready <= BAR_SECONDS
