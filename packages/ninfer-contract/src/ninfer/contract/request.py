"""What a caller asks of one generation.

Source: specification 3.1 and 10.3; reference contract section 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ninfer.contract.constraint import OutputConstraint
from ninfer.contract.sampling import SamplingOverrides
from ninfer.contract.session import Channel
from ninfer.contract.tools import ToolChoice


@dataclass(frozen=True, slots=True)
class StopString:
    """Text that ends the answer when it appears in one channel."""

    text: str
    channel: Channel = Channel.CONTENT
    include_in_output: bool = False


@dataclass(frozen=True, slots=True)
class StopPolicy:
    """What ends an answer besides its language; ``include_model_defaults`` keeps the EOS set."""

    token_ids: tuple[int, ...] = ()
    strings: tuple[StopString, ...] = ()
    include_model_defaults: bool = True
    publish_stop_token: bool = False


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How the answer is published."""

    raw: bool = False
    preserve_special_tokens: bool = False
    tool_name_characters: int = 128


@dataclass(frozen=True, slots=True)
class ThinkingOptions:
    """``budget_tokens`` bounds what the model thinks; None leaves it free."""

    budget_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """Sampling, length and reuse; ``requested_output_tokens`` None means up to the context."""

    sampling: SamplingOverrides = SamplingOverrides()
    requested_output_tokens: int | None = None
    allow_prefix_reuse: bool = True
    thinking: ThinkingOptions = ThinkingOptions()


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Everything of a request that is not its prompt.

    ``live_timings`` asks for a snapshot of the speeds before every published text.
    """

    constraint: OutputConstraint | None = None
    tool_choice: ToolChoice = ToolChoice()
    execution: ExecutionOptions = ExecutionOptions()
    stop: StopPolicy = StopPolicy()
    output: OutputOptions = OutputOptions()
    phase_timings: bool = False
    live_timings: bool = False


MOST_DRAFTS = 15
"""Drafts of one row and round at most."""

MOST_THREADS = 1024
"""Threads of the CPU at most; what a machine cannot start ends its process without a word."""


class SpeculativeBackend(Enum):
    """How drafts are proposed."""

    NONE = "none"
    MTP = "mtp"
    DFLASH = "dflash"
    DFLASH2 = "dflash2"

    @property
    def default_draft_tokens(self) -> int:
        """Return the drafts per round where nobody says how many.

        Source: measured with the embedded model's drafters, whose later drafts seldom pay.
        """
        return 0 if self is SpeculativeBackend.NONE else 3


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Fixed choices of one engine.

    Units: rows, requests, tokens, milliseconds, bytes. ``kv_tokens`` None: every row's whole
    context; ``compute_threads`` None: as many threads of the CPU as the tensor library chooses.
    ``state_checkpoint_bytes`` of device memory keep recurrent states of hybrid models, from which
    later prompts start; fewer than one state's, or 0, keep none.
    Raises: ValueError — a number is out of range.
    """

    max_concurrency: int = 1
    max_pending_requests: int = 16
    pending_timeout_ms: int = 30_000
    max_context: int = 2048
    kv_tokens: int | None = None
    prefill_chunk: int = 1024
    grammar_cache_bytes: int = 256 << 20
    host_snapshot_bytes: int = 512 << 20
    state_checkpoint_bytes: int = 512 << 20
    speculative: SpeculativeBackend = SpeculativeBackend.NONE
    draft_tokens: int = 0
    mask_threads: int = 1
    compute_threads: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.max_concurrency <= 8:
            raise ValueError(f"max_concurrency: {self.max_concurrency} is not in 1..8")
        if self.max_pending_requests < 0:
            raise ValueError(f"max_pending_requests: {self.max_pending_requests} is negative")
        if not 0 <= self.draft_tokens <= MOST_DRAFTS:
            raise ValueError(f"draft_tokens: {self.draft_tokens} is not in 0..{MOST_DRAFTS}")
        for name in ("max_context", "prefill_chunk", "pending_timeout_ms", "mask_threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is less than 1")
        if self.compute_threads is not None and self.compute_threads < 1:
            raise ValueError(f"compute_threads: {self.compute_threads} is less than 1")
        if self.compute_threads is not None and self.compute_threads > MOST_THREADS:
            raise ValueError(f"compute_threads: {self.compute_threads} is over {MOST_THREADS}")
        for name in ("grammar_cache_bytes", "host_snapshot_bytes", "state_checkpoint_bytes"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: {getattr(self, name)} is negative")
