"""Runs a test file's kernels on the CPU, where Triton interprets them."""

from __future__ import annotations

import os
import subprocess
import sys


def interpreted(file: str) -> list[float]:
    """Return the numbers that a file prints when it is run with interpreted kernels.

    Triton decides when a kernel is defined whether it is interpreted, so it needs a process.
    """
    done = subprocess.run(
        [sys.executable, file],
        env=os.environ
        | {
            "TRITON_INTERPRET": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [float(line) for line in done.stdout.split()]
