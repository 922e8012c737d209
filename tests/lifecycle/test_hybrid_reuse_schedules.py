"""Whatever comes and goes in a hybrid's program, every answer is that of a fresh computation."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ninfer.contract import (
    CommitDecision,
    PendingBatch,
    ResumeRoute,
    ResumeState,
    RoundKind,
    SequenceId,
    SequenceRequest,
)
from ninfer.runtime.models.kv_pool import PAGE_TOKENS
from support.hybrid_reuse import SETUPS, Setup, TinyHybrid, require_fresh_state
from support.program_runs import CANCEL, GREEDY, ROUTES, prompt, restore

EXAMPLES = 300 if os.environ.get("NINFER_SLOW") else 16
STEPS = 30
CONTEXT = 192
BASES = [prompt(150, seed) for seed in range(3)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyHybrid:
    return TinyHybrid(tmp_path_factory.mktemp("tiny"))


@dataclass
class Row:
    """What is known of one sequence; ``forced`` are places of tokens that nobody chose."""

    text: tuple[int, ...]
    computed: int
    said: list[int] = field(default_factory=list)
    forced: set[int] = field(default_factory=set)

    @property
    def whole(self) -> tuple[int, ...]:
        return (*self.text, *self.said)


def is_starting(machine: Schedule) -> bool:
    return bool(machine.starting)


def is_decoding(machine: Schedule) -> bool:
    return bool(machine.decoding)


def is_pausing(machine: Schedule) -> bool:
    return bool(machine.paused)


class Schedule(RuleBasedStateMachine):
    """Opens, computes, decodes, pauses and ends rows in any order."""

    def __init__(self, tiny: TinyHybrid, seen: Counter[str]) -> None:
        super().__init__()
        self.tiny = tiny
        self.seen = seen
        self.starting: dict[SequenceId, Row] = {}
        self.decoding: dict[SequenceId, Row] = {}
        self.paused: list[tuple[ResumeState, Row]] = []
        self.texts = list(BASES)
        self.asked: list[tuple[int, ...]] = []

    @initialize(
        setup=st.sampled_from(SETUPS),
        slots=st.sampled_from([1, 2, 3, 100]),
        pages=st.sampled_from([3, 5, 9]),
        chunk=st.sampled_from([24, 256]),
    )
    def begin(self, setup: Setup, slots: int, pages: int, chunk: int) -> None:
        self.fresh = self.tiny.program(setup, max_concurrency=1, max_context=CONTEXT)
        self.owner = self.tiny.program(
            setup,
            max_concurrency=3,
            max_context=CONTEXT,
            kv_tokens=pages * PAGE_TOKENS,
            prefill_chunk=chunk,
            state_checkpoint_bytes=slots * self.tiny.state_bytes,
        )

    @rule(
        which=st.integers(1, 6),
        cut=st.sampled_from([0, 1, 2, 15, 16, 17]) | st.integers(0, 150),
        added=st.integers(0, 12),
        seed=st.integers(0, 2),
        repeats=st.booleans(),
        reuse=st.sampled_from([True, True, True, False]),
        rounds=st.integers(-1, 4),
        ends=st.booleans(),
    )
    def begin_turn(
        self,
        which: int,
        cut: int,
        added: int,
        seed: int,
        repeats: bool,
        reuse: bool,
        rounds: int,
        ends: bool,
    ) -> None:
        """Open a text that begins like an earlier one or is one, and perhaps answer it at once."""
        base = self.texts[-min(which, len(self.texts))]
        text = (*base[: max(len(base) - cut, 1)], *prompt(added, seed))[: CONTEXT - 20]
        if repeats and self.asked:
            text = self.asked[-min(which // 2 + 1, len(self.asked))]
        self.asked.append(text)
        if not self.owner.can_open(len(text), 8):
            return
        found = self.owner.open(SequenceRequest(text, GREEDY, reuse))
        sequence = found.sequence
        self.starting[sequence] = Row(text, found.reused_tokens)
        self.seen["whole"] += found.reused_tokens == len(text)
        self.seen["part"] += 0 < found.reused_tokens < len(text)
        while rounds >= 0 and sequence in self.starting:
            self._prefill(sequence, aborts=False)
        for _ in range(rounds):
            if self.owner.can_advance([sequence]):
                batch = self.owner.decode([sequence], [8], None)
                self._commit(batch, [len(batch.rows[0].tokens)])
        if ends and sequence in self.decoding:
            self._release(sequence)

    @precondition(is_starting)
    @rule(which=st.integers(0, 2), aborts=st.booleans())
    def prefill(self, which: int, aborts: bool) -> None:
        self._prefill(list(self.starting)[which % len(self.starting)], aborts=aborts)

    @precondition(is_decoding)
    @rule(
        most=st.integers(1, 3),
        rounds=st.integers(1, 3),
        ending=st.sampled_from(["none", "none", "abort", "cancel", "terminal"]),
    )
    def decode(self, most: int, rounds: int, ending: str) -> None:
        for _ in range(rounds):
            rows = [s for s, row in self.decoding.items() if len(row.whole) < CONTEXT][:most]
            rows = rows[: self.owner.can_advance(rows)]
            if not rows:
                return
            left = [CONTEXT - len(self.decoding[sequence].whole) for sequence in rows]
            batch = self.owner.decode(rows, left, None)
            if ending == "abort":
                self.owner.abort(batch)
                continue
            accepted = [len(row.tokens) for row in batch.rows]
            if ending == "cancel":
                accepted[0] = 0
            elif ending == "terminal":
                accepted[0] = (accepted[0] + 1) // 2
            self._commit(batch, accepted)

    @precondition(is_decoding)
    @rule(which=st.integers(0, 2), tokens=st.integers(1, 6), kept=st.integers(1, 6))
    def force(self, which: int, tokens: int, kept: int) -> None:
        sequence = list(self.decoding)[which % len(self.decoding)]
        row = self.decoding[sequence]
        if len(row.whole) + tokens <= CONTEXT and self.owner.can_advance([sequence], [tokens]):
            batch = self.owner.append_control(sequence, prompt(tokens, 8))
            self._commit(batch, [min(kept, tokens)])

    @precondition(lambda machine: is_starting(machine) or is_decoding(machine))
    @rule(which=st.integers(0, 5))
    def release(self, which: int) -> None:
        rows = [*self.starting, *self.decoding]
        sequence = rows[which % len(rows)]
        self._release(sequence)

    @precondition(lambda machine: is_starting(machine) or is_decoding(machine))
    @rule(which=st.integers(0, 5), route=st.sampled_from(ROUTES), returns=st.booleans())
    def pause(self, which: int, route: ResumeRoute, returns: bool) -> None:
        rows = self.decoding or self.starting
        sequence = list(rows)[which % len(rows)]
        require_fresh_state(self.owner, self.fresh, sequence)
        state = self.owner.pause(sequence, route)
        self.paused.append((state, rows.pop(sequence)))
        if returns:
            self._resume(-1)

    @precondition(is_pausing)
    @rule(which=st.integers(0, 2), revokes=st.booleans())
    def resume(self, which: int, revokes: bool) -> None:
        place = which % len(self.paused)
        if revokes:
            state, row = self.paused[place]
            self.paused[place] = (self.owner.revoke(state), row)
        self._resume(place)

    @invariant()
    def nothing_is_held_beyond_what_there_is(self) -> None:
        if hasattr(self, "owner"):
            usage = self.owner.usage
            assert usage.kv_used_pages <= usage.kv_capacity_pages
            assert usage.rows_used == len(self.starting) + len(self.decoding)
            assert usage.state_used_slots <= usage.state_capacity_slots

    def teardown(self) -> None:
        if not hasattr(self, "owner"):
            return
        for sequence in [*self.starting, *self.decoding]:
            self._release(sequence)
        usage = self.owner.usage
        assert (usage.rows_used, usage.kv_used_pages) == (0, usage.kv_cached_pages)
        left = usage.kv_capacity_pages * PAGE_TOKENS
        while left:
            tokens = min(left, CONTEXT)
            self.owner.open(SequenceRequest(prompt(tokens, 9), GREEDY, False))
            left -= tokens
        usage = self.owner.usage
        assert (usage.kv_cached_pages, usage.state_used_slots) == (0, usage.rows_used)

    def _resume(self, place: int) -> None:
        state, row = self.paused[place]
        if self.owner.can_resume(state):
            del self.paused[place]
            sequence = restore(self.owner, state)
            (self.decoding if row.said else self.starting)[sequence] = row
            self.seen[state.route.value] += 1

    def _prefill(self, sequence: SequenceId, *, aborts: bool) -> None:
        row = self.starting[sequence]
        step = self.owner.prefill(sequence, None)
        row.computed += step.computed_tokens
        if step.batch is None:
            return
        assert row.computed == len(row.text)
        if aborts:
            self.owner.abort(step.batch)
            return
        self.decoding[sequence] = self.starting.pop(sequence)
        self._commit(step.batch, [1])

    def _commit(self, batch: PendingBatch, accepted: Sequence[int]) -> None:
        decisions = []
        for row, count in zip(batch.rows, accepted, strict=True):
            is_short = count < len(row.tokens)
            decisions.append(CommitDecision(count, terminal=is_short) if count else CANCEL)
        self.owner.commit(batch, decisions)
        for row, count in zip(batch.rows, accepted, strict=True):
            known = self.decoding[row.sequence]
            if batch.kind is RoundKind.CONTROL:
                known.forced.update(range(len(known.said), len(known.said) + count))
            known.said += row.tokens[:count]
            if not count:
                self._end(row.sequence)

    def _release(self, sequence: SequenceId) -> None:
        require_fresh_state(self.owner, self.fresh, sequence)
        self.owner.release(sequence)
        self._end(sequence)

    def _end(self, sequence: SequenceId) -> None:
        row = (self.starting if sequence in self.starting else self.decoding).pop(sequence)
        if row.said:
            logits = self.tiny.logits(row.whole)[len(row.text) - 1 : -1]
            logits = logits[:, : self.tiny.model.facts.token_domain]
            lost = logits.amax(1) - logits.gather(1, torch.tensor(row.said)[:, None])[:, 0]
            chosen = [place for place in range(len(row.said)) if place not in row.forced]
            assert lost[chosen].max() < 1e-4
        self.texts.append(row.whole)


def test_no_schedule_changes_an_answer(tiny: TinyHybrid) -> None:
    seen: Counter[str] = Counter()
    run_state_machine_as_test(
        lambda: Schedule(tiny, seen),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            # A schedule is as good as a shorter one, and finding that takes minutes.
            phases=[Phase.generate],
        ),
    )
    # The schedules are of no use if nothing is reused in them.
    assert min(seen[kind] for kind in ("whole", "part", "snapshot", "replay")) >= 3, seen
