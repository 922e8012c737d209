"""One case in a process of its own, with bounded time and memory, and what it cost there.

Two routes: what ``ninfer check`` does, and what an engine does before it queues a request. The
process is forked from one that has the vocabulary indexed, so a case costs only itself.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from ninfer.contract import OutputConstraint, RequestError
from ninfer.text import ConstraintCompiler
from support.vocabularies import qwen_vocabulary

SECONDS = 2.0
MEMORY_BYTES = 512 << 20
_HARD_SECONDS = 20
ROUTES = ("check", "engine")


class Cost(NamedTuple):
    """What one route of one case came to: ``answered``, ``refused``, or what went wrong."""

    route: str
    outcome: str
    seconds: float
    memory_bytes: int

    @property
    def is_kept(self) -> bool:
        """Return whether the bar is kept."""
        ends = self.outcome == "answered" or self.outcome.startswith("refused")
        return ends and self.seconds <= SECONDS and self.memory_bytes <= MEMORY_BYTES


@cache
def _compiler() -> ConstraintCompiler:
    compiler = ConstraintCompiler(qwen_vocabulary())
    assert compiler.core
    return compiler


def prepare() -> None:
    """Load and index what every case needs, once, in the process that forks."""
    from ninfer.cli.check import allowance_of

    allowance_of(OutputConstraint.json_schema('{"type":"string","pattern":"a","maxLength":3}'))
    allowance_of(OutputConstraint.grammar('root ::= "a"'))
    _compiler()


def cost_of(constraint: OutputConstraint, route: str) -> Cost:
    """Run one route in a child and return its cost; the child is gone afterwards."""
    prepare()
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _report(writing, constraint, route)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(child, 0)
    if text:
        return Cost(route, *json.loads(text))
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    name = signal.Signals(number).name if number else f"exit {os.WEXITSTATUS(status)}"
    return Cost(route, f"crash {name}", usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10)


def _report(writing: int, constraint: OutputConstraint, route: str) -> None:
    """Run the route, write what it came to, and leave without any clean-up of the parent's."""
    try:
        held = _status("VmSize")
        resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY_BYTES, held + MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (_HARD_SECONDS, _HARD_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        base, start = _status("VmRSS"), process_time()
        outcome = _outcome(_ROUTES[route], constraint)
        seconds, memory = process_time() - start, max(0, _status("VmHWM") - base)
        os.write(writing, json.dumps([outcome, round(seconds, 4), memory]).encode())
    finally:
        os._exit(0)


def _outcome(run: Callable[[OutputConstraint], Any], constraint: OutputConstraint) -> str:
    try:
        run(constraint)
    except RequestError as refusal:
        return f"refused {type(refusal).__name__}"
    except MemoryError:
        return "crash MemoryError"
    except BaseException as error:
        return f"crash {type(error).__name__}: {str(error)[:200]}"
    return "answered"


def _check(constraint: OutputConstraint) -> None:
    from ninfer.cli.check import allowance_of

    allowance_of(constraint)


def _compile(constraint: OutputConstraint) -> None:
    _compiler().compile(constraint)


_ROUTES: dict[str, Callable[[OutputConstraint], Any]] = {"check": _check, "engine": _compile}


def _status(name: str) -> int:
    with Path("/proc/self/status").open() as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name + ":"))
