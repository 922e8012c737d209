"""Forward, Finish and the fold of exactly B rows, run eagerly or replayed from graphs.

Source: specification 9.3. A graph holds what it reads and writes: its buffers outlive it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from ninfer.runtime.models.kv_pool import KvPool
from ninfer.runtime.program.device_stream import DeviceStream
from ninfer.runtime.program.round_input import RoundRows
from ninfer.runtime.program.round_stages import RoundStages, Verified

if TYPE_CHECKING:
    from torch.cuda import _POOL_HANDLE

_WARM_UPS = 2


class RoundUnit(Protocol):
    """Launches the two stages of a round; Forward, masks, Finish, in this order."""

    def forward(self) -> None:
        """Launch Forward over the rows as they are on the device."""
        ...

    def finish(self) -> None:
        """Launch Finish under the masks as they are on the device."""
        ...


class EagerUnit:
    """Implements: RoundUnit; calls the stages as they are.

    Shapes: masks int32[B, P, W] on the device; in host memory, written when the stream has come so
            far: drafts int64[B, K] of this round, result int64[B, words], and ahead int64[B, K],
            drafts of the next round.
    """

    def __init__(
        self,
        stages: RoundStages,
        stream: DeviceStream,
        rows: RoundRows,
        masks: Tensor,
        drafts: Tensor,
        result: Tensor,
        ahead: Tensor,
    ) -> None:
        self._stages = stages
        self._stream = stream
        self._rows = rows
        self._masks = masks
        self._drafts = drafts
        self._result = result
        self._ahead = ahead
        self._verified: Verified | None = None

    def forward(self) -> None:
        """Implements: RoundUnit.forward."""
        self._verified = self._stages.forward(self._rows, self._publish)

    def finish(self) -> None:
        """Implements: RoundUnit.finish."""
        assert self._verified is not None
        drafts = self._stages.finish(self._rows, self._verified, self._masks, self._license)
        if drafts is not None:
            self._ahead.copy_(drafts, non_blocking=True)
            self._stream.ahead.mark()
        self._verified = None

    def _publish(self, drafts: Tensor) -> None:
        self._drafts.copy_(drafts, non_blocking=True)
        self._stream.drafted.mark()

    def _license(self, result: Tensor) -> None:
        self._result.copy_(result, non_blocking=True)
        self._stream.licensed.mark()


class CapturedUnit:
    """Implements: RoundUnit; replays what an eager unit did when it was captured.

    Effects: capturing runs the unit over the rows as they are on the device, so the pools must hold
             nothing yet. Graphs that share ``memory`` must not run at the same time.
    """

    def __init__(self, unit: EagerUnit, rows: int, pool: KvPool, memory: _POOL_HANDLE) -> None:
        states = pool.recurrent
        self._counts = torch.zeros(rows, dtype=torch.int64, device=pool.device)
        self._accepted = torch.zeros(rows, dtype=torch.int64).pin_memory()

        def fold() -> None:
            if states is not None and states.records is not None:
                states.fold(states.records, self._counts)

        stages = (unit.forward, unit.finish, fold)
        _warm_up(stages, pool.device)
        self._forward = CapturedStage(unit.forward, pool.device, memory)
        self._finish = CapturedStage(unit.finish, pool.device, memory)
        self._states = states
        if states is not None:
            self._fold = CapturedStage(fold, pool.device, memory)
            found = states.records
            # Only the plan's shape is read again; the columns themselves belong to the graphs.
            self._records = None if found is None else found._replace(layers=(), fold=self._take_in)
            states.drop()

    def forward(self) -> None:
        """Implements: RoundUnit.forward."""
        self._forward.replay()
        if self._states is not None:
            self._states.records = self._records

    def finish(self) -> None:
        """Implements: RoundUnit.finish."""
        self._finish.replay()

    def _take_in(self, accepted: Sequence[int]) -> None:
        self._accepted.copy_(torch.tensor(accepted))
        self._counts.copy_(self._accepted, non_blocking=True)
        self._fold.replay()


class CapturedStage:
    """One graph and the function that it came from, which holds every buffer of it."""

    def __init__(self, run: Callable[[], None], device: torch.device, memory: _POOL_HANDLE) -> None:
        # First, because members go in order: the graph before its buffers.
        self._graph = torch.cuda.CUDAGraph()
        self._run = run
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            self._graph.capture_begin(pool=memory)
            try:
                run()
            finally:
                self._graph.capture_end()
        torch.cuda.current_stream(device).wait_stream(side)

    def replay(self) -> None:
        """Launch the graph on the current stream."""
        self._graph.replay()


def _warm_up(stages: Sequence[Callable[[], None]], device: torch.device) -> None:
    """Run the stages on a side stream: libraries allocate workspaces there, not in a capture."""
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(_WARM_UPS):
            for stage in stages:
                stage()
    torch.cuda.current_stream(device).wait_stream(side)
