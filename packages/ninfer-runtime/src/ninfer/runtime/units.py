"""One unit of work at a time: control tokens, a decode round, or a chunk of a prompt.

Runs on the worker. ``members`` are the requests of the unit that runs now, so that a broken
unit can name them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ninfer.contract import FinishReason, PendingBatch, Program
from ninfer.runtime.clocks import UnitCost, UnitKind
from ninfer.runtime.counters import Counters
from ninfer.runtime.masks import LookaheadBatch, SessionMasks
from ninfer.runtime.pulse import Pulse
from ninfer.runtime.request import EngineRequest, Phase
from ninfer.runtime.residency import Residency
from ninfer.runtime.round import settle_round
from ninfer.runtime.settlement import Settlement


class UnitRunner:
    """Runs units over the residents and settles what they produced."""

    def __init__(
        self,
        program: Program,
        residency: Residency,
        settlement: Settlement,
        counters: Counters,
        pulse: Pulse,
        lookahead: LookaheadBatch,
        mask_threads: int,
        now: Callable[[], float],
    ) -> None:
        self._program = program
        self._residency = residency
        self._settlement = settlement
        self._counters = counters
        self._pulse = pulse
        self._lookahead = lookahead
        self._mask_threads = mask_threads
        self._now = now
        self._chunks = 0
        self.members: Sequence[EngineRequest] = ()

    def run_controls(self) -> None:
        """Append the forced tokens of every row that needs them, row by row."""
        for request in [r for r in self._residency.residents if r.phase is Phase.CONTROL]:
            started = self._now()
            tokens = tuple(request.session.control_tokens)
            self.members = (request,)
            batch = self._program.append_control(request.resident, tokens)
            self._settle((request,), batch, UnitKind.CONTROL, started)

    def run_decode(self) -> None:
        """Run one round over every decode-ready row."""
        rows = [r for r in self._residency.residents if r.phase is Phase.DECODE]
        if not rows:
            return
        started = self._now()
        self.members = rows
        masks = SessionMasks(rows, self._lookahead, self._mask_threads)
        batch = self._program.decode(
            [r.resident for r in rows],
            [r.session.remaining_model_tokens for r in rows],
            masks if masks.has_constraint else None,
        )
        self._settle(rows, batch, UnitKind.DECODE, started)

    def run_chunk(self) -> None:
        """Compute one prefill or replay chunk; residents take turns, a restored one goes first."""
        candidates = [
            r for r in self._residency.residents if r.phase in (Phase.PREFILL, Phase.REPLAY)
        ]
        if not candidates:
            return
        request = min(candidates, key=lambda r: (not r.is_restoring, r.last_chunk, r.request_id))
        self._chunks += 1
        request.last_chunk = self._chunks
        self.members = (request,)
        if request.phase is Phase.REPLAY:
            self._replay_chunk(request)
        else:
            self._prefill_chunk(request)
        self.members = ()

    def _prefill_chunk(self, request: EngineRequest) -> None:
        started = self._now()
        masks = SessionMasks((request,), self._lookahead, self._mask_threads)
        wants_mask = masks.has_constraint and request.output_limit > 0
        step = self._program.prefill(request.resident, masks if wants_mask else None)
        request.computed_tokens += step.computed_tokens
        self._pulse.add(prefilled=step.computed_tokens)
        if step.batch is None:
            cost = _cost(UnitKind.PREFILL, started, self._now())
            request.clock.charge(cost)
            self._counters.unit(cost)
            self._settlement.progressed(request)
            return
        self._settlement.progressed(request)
        if request.output_limit > 0:
            self._settle((request,), step.batch, UnitKind.PREFILL, started)
            return
        self._program.abort(step.batch)
        self._residency.release(request)
        cost = _cost(UnitKind.PREFILL, started, self._now())
        request.clock.charge(cost)
        self._counters.unit(cost)
        self._settlement.finish(request, FinishReason.NONE)

    def _replay_chunk(self, request: EngineRequest) -> None:
        started = self._now()
        step = self._program.replay(request.resident)
        request.scheduling.replayed_tokens += step.computed_tokens
        cost = _cost(UnitKind.REPLAY, started, self._now())
        request.clock.charge(cost)
        self._counters.unit(cost)
        if step.complete:
            self._residency.replay_completed(request)

    def _settle(
        self, rows: Sequence[EngineRequest], batch: PendingBatch, kind: UnitKind, started: float
    ) -> None:
        produced = self._now()
        settled = settle_round(self._program, rows, batch, self._now)
        waits = batch.device_wait_seconds + batch.draft_wait_seconds
        cost = UnitCost(
            kind,
            started,
            self._now(),
            max(produced - started - waits, 0.0),
            settled.post_seconds,
            settled.output_seconds,
            waits,
            batch.draft_wait_seconds,
        )
        self._counters.unit(cost)
        for outcome in settled.outcomes:
            outcome.request.clock.charge(cost)
            if outcome.preview is not None:
                self._pulse.add(generated=outcome.preview.accepted_tokens)
            self._settlement.apply(outcome, self._residency)
        self.members = ()


def _cost(kind: UnitKind, started: float, ended: float) -> UnitCost:
    return UnitCost(kind, started, ended, ended - started, 0.0, 0.0, 0.0, 0.0)
