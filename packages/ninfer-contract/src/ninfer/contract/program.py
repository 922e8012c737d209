"""The executor the engine drives: physical state, rounds, and nothing of languages.

One worker thread calls it. A PendingBatch must be committed or aborted before the next round.
Source: specification 2.2, 7.5, 9; reference contract section 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from ninfer.contract.batch import CommitDecision, PendingBatch, RowDisposition, SequenceId
from ninfer.contract.mask import MaskProvider
from ninfer.contract.sampling import SamplingParameters


@dataclass(frozen=True, slots=True)
class ProgramShape:
    """Fixed capacities of a program.

    Units: rows resident at once; drafts per row; ids; tokens of one sequence; tokens of all
    sequences together; tokens of one prefill chunk.
    """

    rows: int
    draft_limit: int
    token_domain: int
    context_tokens: int
    kv_tokens: int
    prefill_chunk_tokens: int


@dataclass(frozen=True, slots=True)
class SequenceRequest:
    """What a program needs to open a sequence; ``token_ids`` is the whole prompt."""

    token_ids: tuple[int, ...]
    sampling: SamplingParameters
    allow_prefix_reuse: bool = True


class PrefixPath(Enum):
    """Where reused prompt state came from."""

    ROOT = "root"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class OpenedSequence:
    """An opened sequence and how much of its prompt is already computed."""

    sequence: SequenceId
    reused_tokens: int = 0
    prefix_path: PrefixPath = PrefixPath.ROOT


@dataclass(frozen=True, slots=True)
class PrefillStep:
    """One prefill chunk; ``batch`` holds the first token once the prompt's end was computed."""

    computed_tokens: int
    batch: PendingBatch | None = None


class ResumeRoute(Enum):
    """How a paused sequence comes back."""

    NONE = "none"
    SNAPSHOT = "snapshot"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One chunk of a replay; ``complete`` once the old frontier is reached again."""

    computed_tokens: int
    complete: bool


@dataclass(frozen=True, slots=True)
class ProgramUsage:
    """What a program holds right now, for the metrics; pages are the unit of KV allocation.

    Units: rows; KV pages, of which ``kv_cached_pages`` are only kept for prefix reuse; tokens of
    one page; recurrent states of rows and of checkpoints, from which later prompts start.
    """

    rows_used: int = 0
    kv_used_pages: int = 0
    kv_capacity_pages: int = 0
    kv_cached_pages: int = 0
    page_tokens: int = 1
    state_used_slots: int = 0
    state_capacity_slots: int = 0


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What an engine holds from its start on; nothing of it grows with requests.

    Units: bytes. ``weight_bytes`` counts the model and its drafter, ``kv_bytes`` the keys and
    values of both, ``state_bytes`` recurrent states of rows and checkpoints;
    ``host_snapshot_bytes`` and ``grammar_cache_bytes`` are what paused requests
    and compiled grammars may take of host memory at most.
    """

    weight_bytes: int = 0
    kv_bytes: int = 0
    state_bytes: int = 0
    mask_host_bytes: int = 0
    mask_device_bytes: int = 0
    host_snapshot_bytes: int = 0
    grammar_cache_bytes: int = 0


class ResumeState(Protocol):
    """What a paused sequence owns: a full copy, or the facts to compute it again."""

    @property
    def route(self) -> ResumeRoute:
        """Return the route a restore will take."""
        ...

    @property
    def host_bytes(self) -> int:
        """Return the bytes held in the host pool."""
        ...


class Program(Protocol):
    """Owns device buffers, KV and recurrent state, ledgers, RNG positions and penalties."""

    @property
    def shape(self) -> ProgramShape:
        """Return the fixed capacities."""
        ...

    def can_open(self, prompt_tokens: int, output_tokens: int) -> bool:
        """Return whether ``open`` would find a row and room for its first units of work."""
        ...

    def can_advance(
        self, sequences: Sequence[SequenceId], control_tokens: Sequence[int] = ()
    ) -> int:
        """Return how many sequences, counted from the first, have room for a next unit together.

        A unit is one prefill chunk, one replay chunk, one decode round with its drafts, or where
        ``control_tokens[b]`` (absent: 0 for every row) is positive the append of so many tokens.
        The first sequence alone always has room once every other one is paused or released.
        """
        ...

    @property
    def usage(self) -> ProgramUsage:
        """Return what is allocated now; read by the worker only."""
        ...

    @property
    def memory(self) -> MemoryReport:
        """Return what was reserved once; the bounds of host memory are the engine's to fill in."""
        ...

    def open(self, request: SequenceRequest) -> OpenedSequence:
        """Take a row for a prompt; ``can_open`` was true."""
        ...

    def prefill(self, sequence: SequenceId, masks: MaskProvider | None) -> PrefillStep:
        """Compute the next chunk of one prompt.

        Effects: only the chunk that reaches the prompt's end asks ``masks`` (row 0) and samples.
        """
        ...

    def decode(
        self,
        sequences: Sequence[SequenceId],
        remaining_tokens: Sequence[int],
        masks: MaskProvider | None,
    ) -> PendingBatch:
        """Run one round over the rows in the given order.

        Shapes:  remaining_tokens[b] ≥ 1 bounds what row b may produce.
        Effects: logits, KV and records are provisional until ``commit``. A row whose licensed path
                 met a dead end comes back failed; the others are unaffected.
        Raises:  NonFiniteLogits, InvalidMask, DeviceFailure.
        """
        ...

    def append_control(self, sequence: SequenceId, tokens: Sequence[int]) -> PendingBatch:
        """Append fixed tokens without sampling and without touching the RNG."""
        ...

    def commit(
        self, batch: PendingBatch, decisions: Sequence[CommitDecision]
    ) -> Sequence[RowDisposition]:
        """Make the decided prefixes permanent.

        Effects: KV, recurrent state, ledger, penalty counts and RNG position advance by
                 ``accepted_tokens``; cancelled and failed rows are released.
        Raises:  RowMismatch — another batch is pending, or a decision breaks the row rules.
        """
        ...

    def abort(self, batch: PendingBatch) -> None:
        """Drop a pending batch; every sequence is as before the round."""
        ...

    def release(self, sequence: SequenceId) -> None:
        """Give back the row and memory of a sequence that is not in a pending batch."""
        ...

    def snapshot_bytes(self, sequence: SequenceId) -> int:
        """Return the host bytes that a SNAPSHOT pause of a sequence would hold."""
        ...

    def pause(self, sequence: SequenceId, route: ResumeRoute) -> ResumeState:
        """Free the row of a sequence at a committed boundary and keep what brings it back."""
        ...

    def revoke(self, state: ResumeState) -> ResumeState:
        """Turn a SNAPSHOT into the REPLAY of the same sequence; its host bytes are free again."""
        ...

    def drop(self, state: ResumeState) -> None:
        """Give up a paused sequence for good; its host bytes are free again."""
        ...

    def can_resume(self, state: ResumeState) -> bool:
        """Return whether ``resume`` would find a row and room."""
        ...

    def resume(self, state: ResumeState) -> SequenceId:
        """Take a row for a paused sequence; a REPLAY then needs ``replay`` until complete."""
        ...

    def replay(self, sequence: SequenceId) -> ReplayStep:
        """Compute the next chunk of a replay; nothing is sampled, masked or published."""
        ...
