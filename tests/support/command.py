"""The command over a scripted engine, inside this process."""

from __future__ import annotations

from typing import Any, NamedTuple

from ninfer.cli.main import run_command
from ninfer.cli.services import Services
from support.answering import opening


class Outcome(NamedTuple):
    """How a command ended and what it wrote."""

    status: int
    out: bytes
    err: str


def outcome_of(capture: Any, *arguments: str, script: str, **program: object) -> Outcome:
    """Run a command line; ``capture`` is pytest's ``capsysbinary``."""
    status = run_command(list(arguments), Services(opening(script, **program)))
    captured = capture.readouterr()
    return Outcome(status, captured.out, captured.err.decode())
