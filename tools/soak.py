"""Runs many mixed requests through one engine and looks for what gets lost or grows.

Every constraint kind, every lane, and faults in a few per cent: cancellations at any moment,
dropped handles, consumers that stall or die, deadlines that pass, languages that are refused.
Fails when a started request has not exactly one terminal event, when a lane or a slot stays taken,
when an answer leaves its language, or when memory keeps growing after the warm-up.

    tools/soak.py --requests 2000 --lanes 8
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ninfer.contract import (
    AdmissionError,
    ConstraintKind,
    EngineOptions,
    ExecutionOptions,
    FinishReason,
    GenerationResult,
    NInferError,
    OutputConstraint,
    OutputDelta,
    RequestError,
    RequestOptions,
    SamplingOverrides,
    SchedulingEvent,
    TextPrompt,
)
from ninfer.runtime import Engine, GenerationHandle, open_engine
from ninfer.runtime.request import EngineRequest
from ninfer.runtime.request_log import Throughput

GROWTH_LIMIT = 0.05
STALL_SECONDS = 120.0
WORDS = ("alpha", "beta", "beta blocker", "gamma ray", "δέλτα")
GRAMMAR = 'root ::= "v" [0-9]{1,3} ("." [0-9]){0,2} "\\n"'


class TerminalLog:
    """Counts starts and terminal events per request; implements RequestLog."""

    def __init__(self) -> None:
        self.started: Counter[int] = Counter()
        self.ended: Counter[int] = Counter()
        self.pauses = 0

    def start(self, request: EngineRequest) -> None:
        """Count a start."""
        self.started[request.request_id] += 1

    def rejected(self, error: NInferError) -> None:
        """Leave rejections to the engine's counters."""

    def scheduling(self, request: EngineRequest, event: SchedulingEvent) -> None:
        """Count pauses."""
        self.pauses += event.transition.value == "paused"

    def done(self, request: EngineRequest, result: GenerationResult) -> None:
        """Count a terminal event."""
        self.ended[request.request_id] += 1

    def error(self, request: EngineRequest, error: NInferError) -> None:
        """Count a terminal event."""
        self.ended[request.request_id] += 1

    def throughput(self, period: Throughput) -> None:
        """Leave throughput to the counters."""

    def close(self) -> None:
        """Do nothing."""

    def lost_or_doubled(self) -> list[int]:
        """Return requests without exactly one terminal event."""
        return [number for number in self.started if self.ended[number] != 1]


@dataclass
class Findings:
    """What a run found out."""

    outcomes: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, outcome: str) -> None:
        """Count one outcome."""
        with self.lock:
            self.outcomes[outcome] += 1
            self.memory.append(resident_bytes())

    def growth(self) -> float:
        """Return how much the memory's last tenth lies above the tenth after the warm-up."""
        part = max(len(self.memory) // 10, 1)
        warm = self.memory[3 * part : 4 * part] or self.memory
        last = self.memory[-part:]
        return (sum(last) / len(last)) / (sum(warm) / len(warm)) - 1.0


def resident_bytes() -> int:
    """Return the resident size of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def random_constraint(dice: random.Random) -> OutputConstraint | None:
    """Return one of every kind; schemas and expressions vary, so that the cache turns over."""
    number = dice.randrange(1, 40)
    choices: list[Callable[[], OutputConstraint | None]] = [
        lambda: None,
        lambda: OutputConstraint.grammar(GRAMMAR),
        OutputConstraint.json_object,
        lambda: OutputConstraint.choice(dice.sample(WORDS, dice.randrange(1, len(WORDS)))),
        lambda: OutputConstraint.regex(f"[a-f]{{1,{number}}}!"),
        lambda: OutputConstraint.json_schema(json.dumps(random_schema(number))),
    ]
    return dice.choice(choices)()


def random_schema(number: int) -> dict[str, object]:
    """Return a closed object schema that depends on a number."""
    fields = {
        "ok": {"type": "boolean"},
        f"field{number}": {"type": "integer", "minimum": 0, "maximum": number},
        "kind": {"enum": ["a", "b", number]},
    }
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def violation(constraint: OutputConstraint | None, text: str) -> str | None:
    """Return why a finished answer is outside its language, judged without the product."""
    if constraint is None:
        return None
    kind = constraint.kind
    if kind is ConstraintKind.CHOICE:
        legal = text in constraint.literals
    elif kind is ConstraintKind.REGEX:
        legal = re.fullmatch(constraint.source, text) is not None
    elif kind is ConstraintKind.GRAMMAR:
        legal = re.fullmatch(r"v[0-9]{1,3}(\.[0-9]){0,2}\n", text) is not None
    elif kind is ConstraintKind.JSON_OBJECT:
        legal = isinstance(json.loads(text), dict)
    else:
        legal = list(json.loads(text)) == list(json.loads(constraint.source)["properties"])
    return None if legal else f"{kind.value}: {text!r}"


class Client:
    """One thread that sends requests after each other."""

    def __init__(self, engine: Engine, findings: Findings, seed: int, fault_rate: float) -> None:
        self._engine = engine
        self._findings = findings
        self._dice = random.Random(seed)
        self._fault_rate = fault_rate

    def run(self, requests: int) -> None:
        """Send requests and judge what comes back; what escapes is a problem of its own."""
        try:
            self._run(requests)
        except Exception as error:
            self._findings.note("client died")
            self._findings.problems.append(f"a client died: {error!r}")

    def _run(self, requests: int) -> None:
        for _ in range(requests):
            fault = self._dice.random() < self._fault_rate
            constraint = random_constraint(self._dice)
            try:
                outcome = self._faulty(constraint) if fault else self._plain(constraint)
            except AdmissionError as error:
                outcome = type(error).__name__
            self._findings.note(outcome)

    def _plain(self, constraint: OutputConstraint | None) -> str:
        result = self._start(constraint).wait(timeout=STALL_SECONDS)
        if result.finish_reason is FinishReason.STOP_TOKEN:
            problem = violation(constraint, result.content)
            if problem is not None:
                self._findings.problems.append(f"illegal answer: {problem}")
        return result.finish_reason.value

    def _faulty(self, constraint: OutputConstraint | None) -> str:
        fault = self._dice.choice((self._cancel, self._drop, self._stall, self._late, self._refuse))
        return fault(constraint)

    def _cancel(self, constraint: OutputConstraint | None) -> str:
        handle = self._start(constraint)
        time.sleep(self._dice.random() * 0.05)
        handle.cancel()
        return f"cancel: {handle.wait(timeout=STALL_SECONDS).finish_reason.value}"

    def _drop(self, constraint: OutputConstraint | None) -> str:
        for event in self._start(constraint):
            if isinstance(event, OutputDelta):
                break
        return "dropped"

    def _stall(self, constraint: OutputConstraint | None) -> str:
        def fail() -> None:
            raise RuntimeError("this consumer is gone")

        handle = self._start(constraint)
        handle.listen(fail)
        time.sleep(0.1)
        return f"stalled: {handle.wait(timeout=STALL_SECONDS).finish_reason.value}"

    def _late(self, constraint: OutputConstraint | None) -> str:
        prepared = self._engine.prepare(TextPrompt("too late"))
        self._engine.submit(prepared, RequestOptions(), deadline=0.0)
        raise AssertionError("a deadline in the past was taken")

    def _refuse(self, constraint: OutputConstraint | None) -> str:
        try:
            self._start(OutputConstraint.json_schema('{"$ref":"http://elsewhere/schema"}'))
        except RequestError as error:
            return f"refused: {error.code}"
        raise AssertionError("a schema outside the contract was taken")

    def _start(self, constraint: OutputConstraint | None) -> GenerationHandle:
        sampling = SamplingOverrides(
            temperature=self._dice.choice((0.0, 0.8)), seed=self._dice.randrange(1 << 32)
        )
        execution = ExecutionOptions(
            sampling=sampling, requested_output_tokens=self._dice.choice((1, 8, 24))
        )
        text = "The answer is " + "so very " * self._dice.randrange(12)
        options = RequestOptions(constraint=constraint, execution=execution)
        return self._engine.start(TextPrompt(text), options)


def soak(engine: Engine, log: TerminalLog, arguments: argparse.Namespace) -> dict[str, object]:
    """Run the clients and return the summary; ``problems`` is empty when all is well."""
    findings = Findings()
    clients = 2 * arguments.lanes
    share, rest = divmod(arguments.requests, clients)
    threads = [
        threading.Thread(
            target=Client(engine, findings, arguments.seed + number, arguments.fault_rate).run,
            args=(share + (number < rest),),
        )
        for number in range(clients)
    ]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    settle(engine)
    stats = engine.stats()
    problems = [f"request {number} has no single end" for number in log.lost_or_doubled()]
    problems += findings.problems
    if stats.requests_running or stats.requests_paused or stats.requests_outstanding:
        problems.append("a lane or a slot stayed taken")
    growth = findings.growth()
    if arguments.requests >= 1000 and growth > GROWTH_LIMIT:
        problems.append(f"memory grew by {growth:.1%} after the warm-up")
    return {
        "requests": sum(findings.outcomes.values()),
        "seconds": round(time.monotonic() - started, 1),
        "outcomes": dict(findings.outcomes),
        "generated_tokens": stats.generation_tokens,
        "pauses": log.pauses,
        "resident_mib": round(resident_bytes() / 2**20),
        "growth": round(growth, 4),
        "problems": problems,
    }


def settle(engine: Engine, seconds: float = 10.0) -> None:
    """Wait until cancelled requests left."""
    limit = time.monotonic() + seconds
    while engine.stats().requests_outstanding and time.monotonic() < limit:
        time.sleep(0.01)


def main() -> int:
    """Run from the command line; the exit status says whether anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=None, help="GGUF file or folder; the embedded model")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--lanes", type=int, default=8)
    parser.add_argument("--fault-rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kv-tokens", type=int, default=None, help="less than the lanes want")
    arguments = parser.parse_args()
    options = EngineOptions(
        max_concurrency=arguments.lanes,
        max_pending_requests=2 * arguments.lanes,
        pending_timeout_ms=600_000,
        max_context=256,
        kv_tokens=arguments.kv_tokens,
        grammar_cache_bytes=8 << 20,
        host_snapshot_bytes=4 << 20,
    )
    log = TerminalLog()
    with open_engine(arguments.model, options, log=log) as engine:
        summary = soak(engine, log, arguments)
    print(json.dumps(summary, indent=2, ensure_ascii=False))
    return 1 if summary["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
