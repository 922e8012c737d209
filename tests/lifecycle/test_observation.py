"""What results, counters, metrics and the request log say of the same requests."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ninfer.contract import (
    ConstraintDeadEnd,
    EngineOptions,
    NInferError,
    PendingBatch,
    SpeculativeBackend,
)
from ninfer.runtime import JsonLinesLog
from ninfer.runtime.engine import Engine
from ninfer.runtime.metrics import HistogramValue, Metric
from support.engines import (
    Clock,
    ScriptedFrontend,
    prompt,
    request,
    run_until_idle,
    stepped_engine,
    threaded_engine,
)
from support.scripted_program import ScriptedProgram, hashed_logits


class TimedProgram(ScriptedProgram):
    """Moves a scripted clock as its calls would."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(hashed_logits(32))
        self._clock = clock

    def prefill(self, sequence, masks):
        self._clock.seconds += 4.0
        return super().prefill(sequence, masks)

    def decode(self, sequences, remaining_tokens, masks) -> PendingBatch:
        self._clock.seconds += 3.0
        batch = super().decode(sequences, remaining_tokens, masks)
        self._pending = PendingBatch(batch.kind, batch.rows, 2.0, 0.5)
        return self._pending

    def commit(self, batch, decisions):
        self._clock.seconds += 0.25
        return super().commit(batch, decisions)


def test_every_second_of_a_request_has_its_place() -> None:
    clock = Clock()
    engine = Engine(TimedProgram(clock), ScriptedFrontend(), now=clock, threaded=False)
    handle = engine.start(prompt(3, 4), request("long", tokens=3))
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    timing, wall = result.engine_timing, result.timings
    assert (timing.prefill_units, timing.decode_rounds, timing.control_units) == (1, 2, 0)
    # The wait for drafts is a part of the wait for the device.
    assert timing.device_wait_exposed == timing.decode_device_wait == 5.0
    assert timing.constraint_draft_wait_exposed == 1.0
    stats = engine.stats()
    assert (stats.device_wait_seconds, stats.draft_wait_seconds) == (5.0, 1.0)
    assert timing.program_submit_exposed == 4.0 + 2 * 0.5
    assert timing.program_post_exposed == 3 * 0.25
    assert timing.decode_host == 2 * 0.75
    assert (wall.first_token, wall.prefill, wall.decode) == (4.25, 4.25, 6.5)
    assert wall.first_output == wall.first_token
    assert wall.total == wall.prompt_wall + wall.generation_wall == 10.75
    exposed = (
        timing.queue_wait
        + timing.engine_boundary_exposed
        + timing.program_submit_exposed
        + timing.program_post_exposed
        + timing.engine_commit_output_exposed
        + timing.engine_maintenance_exposed
        + timing.device_wait_exposed
    )
    assert exposed == wall.total


def test_the_draft_wait_is_counted_once_a_batch() -> None:
    clock = Clock()
    options = EngineOptions(max_concurrency=2)
    engine = Engine(TimedProgram(clock), ScriptedFrontend(), options, now=clock, threaded=False)
    handles = [engine.start(prompt(3, row), request("long", tokens=2)) for row in (4, 5)]
    run_until_idle(engine)
    waits = [h.wait(timeout=0).engine_timing.constraint_draft_wait_exposed for h in handles]
    rounds = engine.stats().draft_wait_seconds / 0.5
    assert waits == [0.5, 0.5]
    assert rounds == 2.0


@pytest.mark.parametrize("timings", [False, True])
def test_constraint_seconds_are_collected_on_request_only(timings: bool) -> None:
    from dataclasses import replace

    engine, _ = stepped_engine()
    handle = engine.start(prompt(3, 4), replace(request("even"), phase_timings=timings))
    run_until_idle(engine)
    report = handle.wait(timeout=0).constraint
    assert report is not None
    assert report.mask_positions == len(handle.wait(timeout=0).generated_token_ids)
    assert (report.mask_seconds > 0.0) is timings


def mixed_run(engine: Engine) -> Counter[str]:
    """Run requests of every outcome and return how many ended how."""
    outcomes: Counter[str] = Counter()
    handles = [
        engine.start(prompt(3, 4 + row), request(rule, tokens=8))
        for row, rule in enumerate(("even", "long", None, "one", "dead"))
    ]
    handles.append(engine.start(prompt(3, 9), request("long", tokens=200)))
    handles[-1].cancel()
    with pytest.raises(NInferError):
        engine.start(prompt(3), request("empty"))
    outcomes["rejected"] += 1
    for handle in handles:
        try:
            result = handle.wait(timeout=10)
        except ConstraintDeadEnd:
            outcomes["failed"] += 1
            continue
        outcomes["cancelled" if result.finish_reason.value == "cancelled" else "completed"] += 1
    return outcomes


def value(metrics: list[Metric], name: str, **labels: str) -> Any:
    family = next(metric for metric in metrics if metric.name == name)
    return dict(family.samples)[tuple(labels.items())]


def test_metrics_settle_with_the_requests() -> None:
    with threaded_engine() as engine:
        outcomes = mixed_run(engine)
        metrics = engine.metrics("demo")
    for outcome, count in outcomes.items():
        assert value(metrics, "ninfer_requests_total", outcome=outcome) == count
    assert value(metrics, "ninfer_constraint_dead_ends_total") == 1
    ended = sum(
        value(metrics, "ninfer_constraint_requests_total", outcome=outcome)
        for outcome in ("terminated", "complete_interrupted", "incomplete_interrupted")
    )
    assert ended == 4
    duration = value(metrics, "ninfer_request_duration_seconds")
    assert isinstance(duration, HistogramValue)
    assert duration.buckets[-1] == (float("inf"), 5)
    assert value(metrics, "ninfer_engine_ready") == 1
    assert value(metrics, "ninfer_model_info", model="demo", speculative="none") == 1


def test_metric_names_are_unique_and_counters_say_total() -> None:
    engine, _ = stepped_engine()
    metrics = engine.metrics()
    names = [metric.name for metric in metrics]
    assert len(set(names)) == len(names)
    for metric in metrics:
        assert metric.name.endswith("_total") == (metric.kind.value == "counter")
        assert metric.description


def test_gauges_follow_the_phases() -> None:
    engine, _ = stepped_engine(
        options=EngineOptions(max_concurrency=2), prefill_chunk_tokens=4, context_tokens=64
    )
    handles = [engine.start(prompt(*[3] * 12), request("long", tokens=20)) for _ in range(3)]
    engine.run_cycle()
    stats = engine.stats()
    assert (stats.requests_running, stats.requests_waiting, stats.requests_prefilling) == (2, 1, 2)
    assert stats.usage.rows_used == 2
    run_until_idle(engine)
    stats = engine.stats()
    assert (stats.requests_running, stats.requests_waiting, stats.requests_outstanding) == (0, 0, 3)
    assert all(handle.is_settled for handle in handles)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_unit_of_work_counts_for_the_engine_also_where_no_token_comes_of_it() -> None:
    engine, _ = stepped_engine()
    clocks = iter(range(10_000))
    engine._worker._units._now = lambda: float(next(clocks))
    handle = engine.start(prompt(3, 4), request(tokens=0))
    run_until_idle(engine)
    seen = handle.wait(timeout=0).engine_timing
    assert engine.stats().host_seconds["submit"] == seen.program_submit_exposed > 0


def test_the_wait_of_a_request_that_was_never_admitted_is_a_queue_wait() -> None:
    clock = Clock()
    engine, _ = stepped_engine(clock=clock, options=EngineOptions(max_concurrency=1))
    running = engine.start(prompt(3), request("long", tokens=9))
    waiting = engine.start(prompt(4), request("long", tokens=9))
    engine.run_cycle()
    clock.seconds += 7.0
    waiting.cancel()
    engine.run_cycle()
    result = waiting.wait(timeout=0)
    assert result.engine_timing.queue_wait == result.timings.total == 7.0
    assert engine.stats().queue_seconds.total == 7.0
    running.close()


def test_the_log_has_one_terminal_event_for_every_start(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    engine = Engine(
        ScriptedProgram(hashed_logits(32), rows=2, context_tokens=256, kv_tokens=256),
        ScriptedFrontend(),
        EngineOptions(max_concurrency=2, host_snapshot_bytes=0),
        log=JsonLinesLog(path),
    )
    mixed_run(engine)
    engine.close()
    found = records(path)
    started = [r["request"]["id"] for r in found if r["event"] == "request_start"]
    ended = [r["request"]["id"] for r in found if r["event"] in ("request_done", "request_error")]
    assert sorted(started) == sorted(ended) == [1, 2, 3, 4, 5, 6]
    assert [r["error"]["code"] for r in found if r["event"] == "request_rejected"] == [
        "unsatisfiable_constraint"
    ]
    order = [(r["event"], r["request"]["id"]) for r in found if "request" in r]
    for identity in started:
        first = order.index(("request_start", identity))
        assert all(order[place][1] != identity for place in range(first))


def test_the_log_holds_numbers_and_no_text(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    frontend = ScriptedFrontend({"a secret language": lambda prefix: {7} if not prefix else {0}})
    engine = Engine(
        ScriptedProgram(hashed_logits(32)), frontend, threaded=False, log=JsonLinesLog(path)
    )
    handle = engine.start(prompt(3, 4), request("a secret language"))
    run_until_idle(engine)
    result = handle.wait(timeout=0)
    engine.close()
    text = path.read_text(encoding="utf-8")
    assert "secret" not in text
    assert result.content not in text
    done = records(path)[-1]
    assert done["event"] == "request_done"
    assert set(done) == {
        *("schema", "time", "event", "request", "result", "timings_seconds", "speculative"),
        *("engine_timing", "scheduling", "admission", "thinking", "constraint"),
    }
    assert done["result"]["generated_token_ids"] == [7, 0]
    assert done["constraint"]["terminated"] is True
    assert done["constraint"]["timings_seconds"] is None


def test_pauses_are_logged_step_by_step(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    engine = Engine(
        ScriptedProgram(hashed_logits(32), context_tokens=64, kv_tokens=64),
        ScriptedFrontend(),
        EngineOptions(max_concurrency=2, host_snapshot_bytes=0),
        threaded=False,
        log=JsonLinesLog(path),
    )
    handles = [engine.start(prompt(3, row), request("long", tokens=50)) for row in (4, 5)]
    run_until_idle(engine)
    engine.close()
    steps = [r["transition"] for r in records(path) if r["event"] == "request_scheduling"]
    assert steps == [
        *("pause_started", "paused", "restore_started", "restored"),
        *("replay_complete", "recovery_complete", "terminal"),
    ]
    assert all(handle.is_settled for handle in handles)


def test_the_speculative_backend_is_named_in_the_result() -> None:
    engine, _ = stepped_engine(
        options=EngineOptions(speculative=SpeculativeBackend.MTP, draft_tokens=3),
        draft_limit=3,
        drafter=lambda history: (7, 7, 7),
    )
    handle = engine.start(prompt(3, 4), request(tokens=5))
    run_until_idle(engine)
    report = handle.wait(timeout=0).speculative
    assert (report.backend, report.enabled, report.draft_window) == ("mtp", True, 3)


def test_throughput_is_logged_while_tokens_are_computed(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    clock = Clock()
    log = JsonLinesLog(path)
    engine = Engine(
        ScriptedProgram(hashed_logits(32)), ScriptedFrontend(), now=clock, threaded=False, log=log
    )
    handle = engine.start(prompt(3, 4), request("long", tokens=4))
    for _ in range(6):
        engine.run_cycle()
        clock.seconds += 3.0
    clock.seconds += 60.0
    engine.run_cycle()
    engine.close()
    (period,) = [r for r in records(path) if r["event"] == "throughput"]
    assert (period["prefill_tokens"], period["generation_tokens"]) == (2, 4)
    assert period["seconds"] == 12.0
    assert handle.is_settled


def test_throughput_is_measured_over_work_and_not_over_the_sleep_before_it(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    clock = Clock()
    engine = Engine(
        ScriptedProgram(hashed_logits(32)),
        ScriptedFrontend(),
        now=clock,
        threaded=False,
        log=JsonLinesLog(path),
    )
    for row in range(2):
        clock.seconds += 3600.0
        handle = engine.start(prompt(3, 4, row), request("long", tokens=3))
        run_until_idle(engine)
        clock.seconds += 11.0
        engine.run_cycle()
        assert handle.is_settled
    engine.close()
    periods = [r for r in records(path) if r["event"] == "throughput"]
    assert [p["seconds"] for p in periods] == [11.0, 11.0]
    assert [(p["prefill_tokens"], p["generation_tokens"]) for p in periods] == [(3, 3), (3, 3)]


def test_an_idle_worker_still_reports_the_period_that_it_worked_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ninfer.runtime.pulse.PERIOD_SECONDS", 0.2)
    path = tmp_path / "requests.jsonl"
    with Engine(
        ScriptedProgram(hashed_logits(32)), ScriptedFrontend(), log=JsonLinesLog(path)
    ) as engine:
        engine.generate(prompt(3, 4), request("long", tokens=3))
        limit = time.monotonic() + 10.0
        while not path.read_text(encoding="utf-8").count("throughput"):
            assert time.monotonic() < limit
            time.sleep(0.02)
    (period,) = [r for r in records(path) if r["event"] == "throughput"]
    assert (period["prefill_tokens"], period["generation_tokens"]) == (2, 3)


class FullDisk(io.StringIO):
    """A file that takes nothing for a while."""

    is_full = True

    def write(self, text: str) -> int:
        if self.is_full:
            raise OSError(28, "No space left on device")
        return super().write(text)

    def close(self) -> None:
        self.kept = self.getvalue()
        super().close()


def test_a_full_disk_costs_records_and_neither_the_log_nor_the_engine(tmp_path: Path) -> None:
    log = JsonLinesLog(tmp_path / "requests.jsonl")
    log._file.close()
    log._file = disk = FullDisk()
    engine = Engine(ScriptedProgram(hashed_logits(32)), ScriptedFrontend(), log=log)
    engine.generate(prompt(3, 4), request("one"))
    limit = time.monotonic() + 10.0
    while log._unwritten < 2:
        assert time.monotonic() < limit
        time.sleep(0.002)
    disk.is_full = False
    engine.generate(prompt(3, 4), request("one"))
    engine.close()
    found = [json.loads(line) for line in disk.kept.splitlines()]
    assert [r["event"] for r in found][:2] == ["request_start", "request_done"]
    assert [r["records"] for r in found if r["event"] == "log_dropped"] == [2]


def test_facts_that_are_no_unicode_text_are_logged_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    log = JsonLinesLog(path)
    log.server_start({"model": "folder-\udcff"})
    log.close()
    assert [r["event"] for r in records(path)] == ["server_start"]
