"""The parts of a program, put together for one model, one set of options and perhaps a drafter."""

from __future__ import annotations

from typing import NamedTuple

from ninfer.contract import EngineOptions, MemoryReport, ProgramShape
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.models.drafters import Drafter
from ninfer.runtime.models.kv_group import KvGroup
from ninfer.runtime.models.kv_pool import PAGE_TOKENS, KvPool
from ninfer.runtime.program.decode_forward import decode_forward
from ninfer.runtime.program.decode_round import DecodeRound, OrdinaryRound
from ninfer.runtime.program.drafting import Drafting
from ninfer.runtime.program.mask_buffer import MaskBuffer
from ninfer.runtime.program.reservation import reserved
from ninfer.runtime.program.resident_set import ResidentSet
from ninfer.runtime.program.sampler import Sampler
from ninfer.runtime.program.shape import program_shape
from ninfer.runtime.program.speculative_round import SpeculativeRound


class ProgramParts(NamedTuple):
    """What a program works with; ``pool`` is the target's, ``taps`` the layers a drafter reads."""

    shape: ProgramShape
    pool: KvPool
    taps: tuple[int, ...]
    residents: ResidentSet
    sampler: Sampler
    ordinary: OrdinaryRound
    round: DecodeRound
    drafting: Drafting | None
    memory: MemoryReport


def assemble(model: LoadedModel, options: EngineOptions, drafter: Drafter | None) -> ProgramParts:
    """Reserve all memory and connect the parts.

    Raises: UnsupportedOption — the options ask for a drafter that is not the given one; ValueError
            — the key-value memory holds no whole context, or is more than the device has.
    """
    decoder = model.decoder
    shape = program_shape(model, options, None if drafter is None else drafter.backend)
    pages = shape.kv_tokens // PAGE_TOKENS
    pools = [reserved(shape, lambda: decoder.new_pool(pages, shape.rows))]
    if drafter is not None:
        pools.append(reserved(shape, lambda: drafter.new_pool(pages)))
    lookahead = None if drafter is None else drafter.lookahead
    residents = ResidentSet(KvGroup(pools), pages, shape.rows, decoder.device, lookahead)
    sampler = Sampler(shape.rows, shape.token_domain, decoder.device)
    masks = MaskBuffer(shape.rows, shape.draft_limit + 1, shape.token_domain, decoder.device)
    taps = () if drafter is None else drafter.taps
    forward = decode_forward(decoder, pools[0], taps)
    ordinary = OrdinaryRound(residents, forward, masks, sampler)
    decode_round: DecodeRound = ordinary
    drafting = None
    if drafter is not None:
        drafting = Drafting(drafter, pools[1], residents, shape)
        decode_round = SpeculativeRound(residents, forward, masks, sampler, drafting, shape)
    memory = MemoryReport(
        weight_bytes=decoder.weight_bytes + (drafter.weight_bytes if drafter else 0),
        kv_bytes=sum(pool.kv_bytes for pool in pools),
        state_bytes=sum(pool.state_bytes for pool in pools),
        mask_host_bytes=masks.host_bytes,
        mask_device_bytes=masks.device_bytes,
    )
    return ProgramParts(
        shape, pools[0], taps, residents, sampler, ordinary, decode_round, drafting, memory
    )
