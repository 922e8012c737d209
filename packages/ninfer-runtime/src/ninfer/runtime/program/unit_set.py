"""The units of a program: one per exact number of rows and context profile, made at the start.

Source: specification 9.3. Nothing of a request is part of a unit; rows, drafts and masks are its
input, at addresses that never change.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ninfer.contract import DeviceFailure, ProgramShape, SamplingParameters
from ninfer.ops import SamplingRow
from ninfer.runtime.models.kernels import has_kernels
from ninfer.runtime.models.kv_pool import PAGE_TOKENS, KvPool
from ninfer.runtime.program.device_stream import DeviceStream
from ninfer.runtime.program.kv_room import pages_for
from ninfer.runtime.program.mask_buffer import MaskBuffer
from ninfer.runtime.program.round_input import RoundInput, RowNumbers
from ninfer.runtime.program.round_stages import RoundStages
from ninfer.runtime.program.round_unit import CapturedUnit, EagerUnit, RoundUnit

if TYPE_CHECKING:
    from torch.cuda import _POOL_HANDLE

PROFILE_PAGES = 4
"""Pages of the shortest context profile; each further profile holds twice as many."""


class UnitSet:
    """The buffers of rounds and the units over them.

    Shapes: ``drafts`` and ``ahead`` int64[rows, K], ``result`` int64[rows, words] in host memory.
    Raises: DeviceFailure — a unit cannot be captured.
    """

    def __init__(
        self,
        stages: RoundStages,
        shape: ProgramShape,
        pool: KvPool,
        masks: MaskBuffer,
        *,
        is_captured: bool,
    ) -> None:
        on_device = pool.device.type == "cuda"
        self._stages = stages
        self._masks = masks
        self.stream = DeviceStream(pool.device)
        self._profiles = context_profiles(
            pages_for(shape.context_tokens), has_kernels(pool.device.type)
        )
        self.input = RoundInput(shape.rows, shape.draft_limit, self._profiles[-1], pool.device)
        self.drafts = _host((shape.rows, shape.draft_limit), on_device)
        self.ahead = _host((shape.rows, shape.draft_limit), on_device)
        self.result = _host((shape.rows, stages.result_words), on_device)
        self._units: dict[tuple[int, int], RoundUnit] = {}
        # The largest first, so that the smaller ones find room in its graph memory.
        sizes = [(rows, pages) for rows in range(shape.rows, 0, -1) for pages in self._profiles]
        if is_captured:
            self._capture(sizes, pool, shape.rows)
        else:
            self._units = {size: self._unit(*size) for size in sizes}

    def unit(self, rows: int, tokens: int) -> RoundUnit:
        """Return the unit of so many rows, none of which holds more than ``tokens`` slots."""
        pages = next(p for p in self._profiles if p * PAGE_TOKENS >= tokens)
        return self._units[rows, pages]

    def _unit(self, rows: int, pages: int) -> EagerUnit:
        return EagerUnit(
            self._stages,
            self.stream,
            self.input.rows(rows, pages),
            self._masks.words(rows, self._stages.positions),
            self.drafts[:rows],
            self.result[:rows],
            self.ahead[:rows],
        )

    def _capture(self, sizes: Sequence[tuple[int, int]], pool: KvPool, most_rows: int) -> None:
        still = SamplingRow(SamplingParameters(temperature=0.0), position=0)
        for row in range(most_rows):
            self.input.write(row, still, RowNumbers(0, 0, 0, 1, row), (), ())
        self.input.upload(most_rows)
        memory: _POOL_HANDLE = torch.cuda.graph_pool_handle()
        # Garbage that holds device memory must not be freed in the middle of a capture.
        gc.collect()
        gc.disable()
        try:
            for rows, pages in sizes:
                unit = CapturedUnit(self._unit(rows, pages), rows, pool, memory)
                self._units[rows, pages] = unit
                unit.forward()
                unit.finish()
                self.stream.settle()
                pool.drop()
        except RuntimeError as error:
            self._units.clear()
            raise DeviceFailure(f"graph of {rows} rows, {pages} pages: {error}") from error
        finally:
            gc.enable()


def context_profiles(pages: int, reads_in_place: bool) -> tuple[int, ...]:
    """Return the numbers of page places that units are made for, up to a whole context's."""
    if reads_in_place:
        return (pages,)
    profiles = []
    places = PROFILE_PAGES
    while places < pages:
        profiles.append(places)
        places *= 2
    return (*profiles, pages)


def _host(shape: tuple[int, int], on_device: bool) -> Tensor:
    return torch.zeros(shape, dtype=torch.int64, pin_memory=on_device)
