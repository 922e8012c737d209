"""The parts of a program, put together for one model, one set of options and perhaps a drafter."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ninfer.contract import EngineOptions, MemoryReport, ProgramShape
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.drafters import Drafter
from ninfer.runtime.models.kv_group import KvGroup
from ninfer.runtime.models.kv_pool import PAGE_TOKENS, KvPool
from ninfer.runtime.program.decode_forward import decode_forward
from ninfer.runtime.program.decode_round import DecodeRound, OrdinaryRound
from ninfer.runtime.program.drafting import Drafting
from ninfer.runtime.program.ledger_pass import LedgerPass
from ninfer.runtime.program.mask_buffer import MaskBuffer
from ninfer.runtime.program.recurrent_checkpoints import RecurrentCheckpoints
from ninfer.runtime.program.reservation import reserved, reserved_slots
from ninfer.runtime.program.resident_set import ResidentSet
from ninfer.runtime.program.round_stages import RoundStages
from ninfer.runtime.program.sampler import Sampler
from ninfer.runtime.program.shape import program_shape
from ninfer.runtime.program.speculative_round import SpeculativeRound
from ninfer.runtime.program.staged_round import StagedRound
from ninfer.runtime.program.unit_set import UnitSet


class RoundForm(Enum):
    """How decode rounds run: the CPU's way, and a device's without or with graphs.

    RAGGED plans rows of any lengths on the host; STAGED runs Forward and Finish over rows of one
    shape; CAPTURED replays the same two from graphs.
    """

    RAGGED = "ragged"
    STAGED = "staged"
    CAPTURED = "captured"

    @classmethod
    def for_device(cls, device_type: str) -> RoundForm:
        """Return the fastest form on a device."""
        return cls.CAPTURED if device_type == "cuda" else cls.RAGGED


class ProgramParts(NamedTuple):
    """What a program works with; ``pool`` is the target's."""

    shape: ProgramShape
    pool: KvPool
    residents: ResidentSet
    ledger: LedgerPass
    sampler: Sampler
    ordinary: OrdinaryRound
    round: DecodeRound
    drafting: Drafting | None
    memory: MemoryReport


def assemble(
    model: LoadedModel, options: EngineOptions, drafter: Drafter | None, form: RoundForm | None
) -> ProgramParts:
    """Reserve all memory, connect the parts, and capture what the form asks for.

    Raises: UnsupportedOption — the options ask for a drafter that is not the given one; ValueError
            — the key-value memory holds no whole context, or is more than the device has, or the
            checkpoints are; DeviceFailure — a round cannot be captured.
    """
    decoder = model.decoder
    shape = program_shape(model, options, None if drafter is None else drafter.backend)
    pages = shape.kv_tokens // PAGE_TOKENS
    pools = [reserved(shape, lambda: decoder.new_pool(pages, shape.rows))]
    if drafter is not None:
        pools.append(reserved(shape, lambda: drafter.new_pool(pages)))
    lookahead = None if drafter is None else drafter.lookahead
    slots = reserved_slots(shape, pools[0].recurrent, options.state_checkpoint_bytes)
    checkpoints = None if slots is None else RecurrentCheckpoints(slots)
    residents = ResidentSet(KvGroup(pools), shape, decoder.device, lookahead, checkpoints)
    drafting = None if drafter is None else Drafting(drafter, pools[1], residents, shape)
    masks = MaskBuffer(shape.rows, shape.draft_limit + 1, shape.token_domain, decoder.device)
    sampler = Sampler(shape.rows, shape.token_domain, decoder.device)
    ledger = LedgerPass(decoder, pools[0], residents, drafting, shape.prefill_chunk_tokens)
    taps = () if drafter is None else drafter.taps
    ordinary = OrdinaryRound(residents, decode_forward(decoder, pools[0], taps), masks, sampler)
    round_parts = _RoundParts(decoder, shape, pools, residents, masks, sampler, drafting)
    memory = MemoryReport(
        weight_bytes=decoder.weight_bytes + (drafter.weight_bytes if drafter else 0),
        kv_bytes=sum(pool.kv_bytes for pool in pools),
        state_bytes=sum(pool.state_bytes for pool in pools) + (slots.stored_bytes if slots else 0),
        mask_host_bytes=masks.host_bytes,
        mask_device_bytes=masks.device_bytes,
    )
    chosen = RoundForm.for_device(decoder.device.type) if form is None else form
    if chosen is not RoundForm.RAGGED:
        decode_round = _staged(round_parts, is_captured=chosen is RoundForm.CAPTURED)
    else:
        decode_round = ordinary if drafting is None else _ragged(round_parts, drafting)
    return ProgramParts(
        shape, pools[0], residents, ledger, sampler, ordinary, decode_round, drafting, memory
    )


class _RoundParts(NamedTuple):
    decoder: Decoder
    shape: ProgramShape
    pools: list[KvPool]
    residents: ResidentSet
    masks: MaskBuffer
    sampler: Sampler
    drafting: Drafting | None


def _ragged(parts: _RoundParts, drafting: Drafting) -> DecodeRound:
    forward = decode_forward(parts.decoder, parts.pools[0], drafting.drafter.taps)
    return SpeculativeRound(
        parts.residents, forward, parts.masks, parts.sampler, drafting, parts.shape
    )


def _staged(parts: _RoundParts, *, is_captured: bool) -> DecodeRound:
    shape, pool, drafting = parts.shape, parts.pools[0], parts.drafting
    drafter = None if drafting is None else drafting.drafter
    stages = RoundStages(parts.decoder, pool, parts.pools[-1], shape, parts.sampler.counts, drafter)
    units = UnitSet(stages, shape, pool, parts.masks, is_captured=is_captured)
    return StagedRound(parts.residents, units, stages, parts.masks, pool, drafting, shape)
