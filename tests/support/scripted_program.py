"""A Program without a model: logits are a function of the token history.

Real pages, rows, prefix reuse, masks, speculation, pause and replay; every wrong use is refused,
and faults are raised on request. Outputs depend on seed, history and mask only.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from ninfer.contract import (
    CommitDecision,
    IntegrityError,
    Lookahead,
    MaskProvider,
    MemoryReport,
    OpenedSequence,
    PendingBatch,
    PendingRow,
    PrefillStep,
    PrefixPath,
    ProgramShape,
    ProgramUsage,
    ReplayStep,
    ResumeRoute,
    ResumeState,
    RoundKind,
    RowDisposition,
    RowMismatch,
    SequenceId,
    SequenceRequest,
    SpeculationCounts,
    mask_words,
)
from support.scripted_sampling import allowed_ids, mix, pick

Logits = Callable[[tuple[int, ...]], Sequence[float]]
Drafter = Callable[[tuple[int, ...]], Sequence[int]]
Fault = Callable[[str], None]


@cache
def hashed_logits(token_domain: int, seed: int = 0, spread: float = 6.0) -> Logits:
    """Return logits that look random and depend on the last four tokens."""

    @cache
    def recent_logits(recent: tuple[int, ...]) -> tuple[float, ...]:
        key = mix(seed)
        for token in recent:
            key = mix(key ^ token)
        return tuple(spread * (mix(key + t) >> 40) / 2.0**24 for t in range(token_domain))

    return lambda history: recent_logits(history[-4:])


@dataclass(eq=False)
class ScriptedResume:
    """What a paused scripted sequence owns."""

    route: ResumeRoute
    host_bytes: int
    request: SequenceRequest
    ledger: list[int]
    is_held: bool = True


@dataclass(eq=False)
class _Sequence:
    request: SequenceRequest
    ledger: list[int] = field(default_factory=list)
    computed: int = 0
    replay_to: int = 0

    @property
    def history(self) -> tuple[int, ...]:
        return self.request.token_ids + tuple(self.ledger)


class ScriptedProgram:
    """Implements contract.Program over a table of logits.

    ``log`` receives one entry per call that changes something; ``fault`` sees the same names and
    may raise. ``drafter`` proposes from a history; verification is by exact match, so that
    speculation never changes an output.
    """

    def __init__(
        self,
        logits: Logits,
        *,
        token_domain: int = 32,
        rows: int = 8,
        context_tokens: int = 256,
        kv_tokens: int | None = None,
        page_tokens: int = 4,
        prefill_chunk_tokens: int = 16,
        draft_limit: int = 0,
        drafter: Drafter | None = None,
        bytes_per_token: int = 100,
        log: list[str] | None = None,
        fault: Fault | None = None,
    ) -> None:
        self.shape = ProgramShape(
            rows=rows,
            draft_limit=draft_limit,
            token_domain=token_domain,
            context_tokens=context_tokens,
            kv_tokens=kv_tokens or rows * context_tokens,
            prefill_chunk_tokens=prefill_chunk_tokens,
        )
        self.log = [] if log is None else log
        self.host_bytes = 0
        self.mask_calls = 0
        self._logits = logits
        self._drafter = drafter
        self._page_tokens = page_tokens
        self._bytes_per_token = bytes_per_token
        self._fault = fault
        self._sequences: dict[SequenceId, _Sequence] = {}
        self._next_id = 1
        self._pending: PendingBatch | None = None
        self._prompts: list[tuple[int, ...]] = []

    # Capacity

    @property
    def usage(self) -> ProgramUsage:
        used = sum(self._pages(s.computed) for s in self._sequences.values())
        return ProgramUsage(
            rows_used=len(self._sequences),
            kv_used_pages=used,
            kv_capacity_pages=self._capacity_pages,
            page_tokens=self._page_tokens,
        )

    @property
    def memory(self) -> MemoryReport:
        mask_bytes = 4 * mask_words(self.shape.token_domain) * (self.shape.draft_limit + 1)
        return MemoryReport(
            kv_bytes=self._bytes_per_token * self.shape.kv_tokens,
            mask_host_bytes=mask_bytes * self.shape.rows,
        )

    def can_open(self, prompt_tokens: int, output_tokens: int) -> bool:
        first = min(prompt_tokens, self.shape.prefill_chunk_tokens)
        has_row = len(self._sequences) < self.shape.rows
        return has_row and self._pages(first) <= self._free_pages()

    def can_advance(
        self, sequences: Sequence[SequenceId], control_tokens: Sequence[int] = ()
    ) -> int:
        free = self._free_pages()
        controls = control_tokens or [0] * len(sequences)
        for count, (identity, control) in enumerate(zip(sequences, controls, strict=True)):
            state = self._sequences[identity]
            after = len(state.history) + control if control else self._after_unit(state)
            free -= self._pages(after) - self._pages(state.computed)
            if free < 0:
                return count
        return len(sequences)

    # Sequences

    def open(self, request: SequenceRequest) -> OpenedSequence:
        self._enter("open")
        if len(self._sequences) >= self.shape.rows:
            raise IntegrityError("open without a free row")
        reused = self._reusable(request) if request.allow_prefix_reuse else 0
        identity = self._adopt(_Sequence(request, computed=reused))
        path = PrefixPath.CHECKPOINT if reused else PrefixPath.ROOT
        return OpenedSequence(identity, reused, path)

    def prefill(self, sequence: SequenceId, masks: MaskProvider | None) -> PrefillStep:
        self._enter("prefill")
        state = self._sequences[sequence]
        prompt = state.request.token_ids
        step = min(self.shape.prefill_chunk_tokens, len(prompt) - state.computed)
        self._grow(state, state.computed + step)
        if state.computed < len(prompt):
            return PrefillStep(step)
        self._remember(prompt)
        reports, words = self._fill([()], masks)
        row = self._verify(sequence, (), words, 0, None if reports is None else reports[0])
        return PrefillStep(step, self._pend(RoundKind.PREFILL, (row,)))

    def decode(
        self,
        sequences: Sequence[SequenceId],
        remaining_tokens: Sequence[int],
        masks: MaskProvider | None,
    ) -> PendingBatch:
        self._enter("decode")
        if not sequences or min(remaining_tokens) < 1:
            raise IntegrityError("an empty round, or a row without budget")
        drafts = [
            self._draft(identity, remaining)
            for identity, remaining in zip(sequences, remaining_tokens, strict=True)
        ]
        reports, words = self._fill(drafts, masks)
        rows = []
        for index, identity in enumerate(sequences):
            dead = None if reports is None else reports[index]
            rows.append(self._verify(identity, drafts[index], words, index, dead))
        return self._pend(RoundKind.DECODE, tuple(rows))

    def append_control(self, sequence: SequenceId, tokens: Sequence[int]) -> PendingBatch:
        self._enter("append_control")
        if not tokens:
            raise IntegrityError("an empty control unit")
        row = PendingRow(sequence, tuple(tokens))
        return self._pend(RoundKind.CONTROL, (row,))

    def commit(
        self, batch: PendingBatch, decisions: Sequence[CommitDecision]
    ) -> Sequence[RowDisposition]:
        self._enter("commit")
        self._require_pending(batch)
        for row, decision in zip(batch.rows, decisions, strict=True):
            if not decision.is_valid_for(len(row.tokens)) or row.failed != decision.failed:
                raise RowMismatch(f"{decision} does not fit {row}")
        self._pending = None
        return [
            self._commit_row(row, decision)
            for row, decision in zip(batch.rows, decisions, strict=True)
        ]

    def abort(self, batch: PendingBatch) -> None:
        self._enter("abort")
        self._require_pending(batch)
        self._pending = None

    def release(self, sequence: SequenceId) -> None:
        self._enter("release")
        self._leave(sequence)

    # Pause and resume

    def snapshot_bytes(self, sequence: SequenceId) -> int:
        return self._sequences[sequence].computed * self._bytes_per_token

    def pause(self, sequence: SequenceId, route: ResumeRoute) -> ResumeState:
        self._enter(f"pause {route.value}")
        state = self._sequences[sequence]
        held = self.snapshot_bytes(sequence) if route is ResumeRoute.SNAPSHOT else 0
        self.host_bytes += held
        self._leave(sequence)
        return ScriptedResume(route, held, state.request, state.ledger)

    def revoke(self, state: ResumeState) -> ResumeState:
        self._enter("revoke")
        held = self._let_go(state)
        return ScriptedResume(ResumeRoute.REPLAY, 0, held.request, held.ledger)

    def drop(self, state: ResumeState) -> None:
        self._enter("drop")
        self._let_go(state)

    def can_resume(self, state: ResumeState) -> bool:
        assert isinstance(state, ScriptedResume)
        tokens = len(state.request.token_ids) + len(state.ledger) + self.shape.draft_limit
        has_row = len(self._sequences) < self.shape.rows
        return has_row and self._pages(tokens) <= self._free_pages()

    def resume(self, state: ResumeState) -> SequenceId:
        self._enter(f"resume {state.route.value}")
        held = self._let_go(state)
        frontier = len(held.request.token_ids) + len(held.ledger) - 1
        restored = frontier if held.route is ResumeRoute.SNAPSHOT else 0
        return self._adopt(_Sequence(held.request, held.ledger, restored, frontier))

    def replay(self, sequence: SequenceId) -> ReplayStep:
        self._enter("replay")
        state = self._sequences[sequence]
        step = min(self.shape.prefill_chunk_tokens, state.replay_to - state.computed)
        self._grow(state, state.computed + step)
        return ReplayStep(step, state.computed == state.replay_to)

    # Inside

    @property
    def _capacity_pages(self) -> int:
        return self.shape.kv_tokens // self._page_tokens

    def _pages(self, tokens: int) -> int:
        return -(-tokens // self._page_tokens)

    def _free_pages(self) -> int:
        return self._capacity_pages - self.usage.kv_used_pages

    def _after_unit(self, state: _Sequence) -> int:
        target = max(len(state.request.token_ids), state.replay_to)
        if state.computed < target:
            return min(state.computed + self.shape.prefill_chunk_tokens, target)
        limit = self.shape.context_tokens
        return min(len(state.history) + self.shape.draft_limit, limit)

    def _grow(self, state: _Sequence, computed: int) -> None:
        needed = self._pages(computed) - self._pages(state.computed)
        if needed > self._free_pages():
            raise IntegrityError("the KV pool overflows")
        state.computed = computed

    def _enter(self, name: str) -> None:
        if self._pending is not None and name not in ("commit", "abort"):
            raise IntegrityError(f"{name} with a pending batch")
        self.log.append(name)
        if self._fault is not None:
            self._fault(name)

    def _adopt(self, state: _Sequence) -> SequenceId:
        identity = SequenceId(self._next_id)
        self._next_id += 1
        self._sequences[identity] = state
        return identity

    def _leave(self, identity: SequenceId) -> None:
        if identity not in self._sequences:
            raise IntegrityError(f"sequence {identity} is not resident")
        del self._sequences[identity]

    def _let_go(self, state: ResumeState) -> ScriptedResume:
        assert isinstance(state, ScriptedResume)
        if not state.is_held:
            raise IntegrityError("a resume state is used twice")
        state.is_held = False
        self.host_bytes -= state.host_bytes
        return state

    def _reusable(self, request: SequenceRequest) -> int:
        best = 0
        for prompt in self._prompts:
            common = 0
            for ours, theirs in zip(request.token_ids, prompt, strict=False):
                if ours != theirs:
                    break
                common += 1
            best = max(best, common)
        return best if best == len(request.token_ids) else best - best % self._page_tokens

    def _remember(self, prompt: tuple[int, ...]) -> None:
        if prompt not in self._prompts:
            self._prompts = [*self._prompts[-7:], prompt]

    def _require_pending(self, batch: PendingBatch) -> None:
        if batch is not self._pending:
            raise RowMismatch("another batch is pending")

    def _pend(self, kind: RoundKind, rows: tuple[PendingRow, ...]) -> PendingBatch:
        self._pending = PendingBatch(kind, rows)
        return self._pending

    def _draft(self, identity: SequenceId, remaining: int) -> tuple[int, ...]:
        if self._drafter is None:
            return ()
        state = self._sequences[identity]
        room = self.shape.context_tokens - len(state.history) - 1
        extent = max(min(self.shape.draft_limit, remaining - 1, room), 0)
        return tuple(self._drafter(state.history))[:extent]

    def _fill(
        self, drafts: Sequence[Sequence[int]], masks: MaskProvider | None
    ) -> tuple[Sequence[Lookahead | None] | None, array[int]]:
        if masks is None:
            return None, array("i")
        self.mask_calls += 1
        positions = self.shape.draft_limit + 1
        words = mask_words(self.shape.token_domain)
        # All ones would hide a row that is wrongly left unmasked or wrongly masked.
        buffer = array("i", [0x55555555]) * (len(drafts) * positions * words)
        view = memoryview(buffer).cast("B").cast("i", (len(drafts), positions, words))
        reports = masks.fill(drafts, view)
        for row, report in enumerate(reports):
            if report is not None:
                masks.uploaded(row, 4 * words * (len(drafts[row]) + 1))
        return reports, buffer

    def _verify(
        self,
        identity: SequenceId,
        draft: Sequence[int],
        words: array[int],
        row: int,
        report: Lookahead | None,
    ) -> PendingRow:
        state = self._sequences[identity]
        history, tokens = state.history, []
        counts = Counter(state.ledger)
        accepted = 0
        for position in range(len(draft) + 1):
            if report is not None and report.dead_ends >> position & 1:
                return PendingRow(identity, (), failed=True)
            allowed = self._allowed(words, row, position, report)
            token = pick(
                self._logits(history), allowed, state.request.sampling, counts, len(history)
            )
            tokens.append(token)
            history = (*history, token)
            counts[token] += 1
            if position == len(draft) or token != draft[position]:
                break
            accepted += 1
        return PendingRow(
            identity, tuple(tokens), speculation=SpeculationCounts(len(draft), accepted)
        )

    def _allowed(
        self, words: array[int], row: int, position: int, report: Lookahead | None
    ) -> Sequence[int]:
        if report is None:
            return range(self.shape.token_domain)
        count = mask_words(self.shape.token_domain)
        start = (row * (self.shape.draft_limit + 1) + position) * count
        allowed = allowed_ids(words[start : start + count], self.shape.token_domain)
        if not allowed:
            raise IntegrityError("an all-zero mask reached the sampler")
        return allowed

    def _commit_row(self, row: PendingRow, decision: CommitDecision) -> RowDisposition:
        if decision.failed or decision.cancelled:
            self._leave(row.sequence)
            failed = RowDisposition.FAILED_RELEASED
            return failed if decision.failed else RowDisposition.CANCELLED_RELEASED
        state = self._sequences[row.sequence]
        state.ledger.extend(row.tokens[: decision.accepted_tokens])
        # The newest token is the anchor: its KV is computed by the next round.
        self._grow(state, len(state.history) - 1)
        return RowDisposition.FINISHABLE if decision.terminal else RowDisposition.ACTIVE
