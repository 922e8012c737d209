"""A drafter of the kind that its configuration names."""

from __future__ import annotations

from ninfer.contract import SpeculativeBackend
from ninfer.runtime.models.decoder import Decoder
from ninfer.runtime.models.drafters.config import DrafterConfig
from ninfer.runtime.models.drafters.dflash import DflashDrafter
from ninfer.runtime.models.drafters.dflash2 import Dflash2Drafter
from ninfer.runtime.models.drafters.drafter import Drafter
from ninfer.runtime.models.drafters.head import DraftHead
from ninfer.runtime.models.drafters.mtp import MtpDrafter
from ninfer.runtime.models.weights import WeightReader


def build_drafter(
    config: DrafterConfig, reader: WeightReader, target: Decoder, head: DraftHead
) -> Drafter:
    """Return the drafter of a configuration, its weights read.

    Raises: ModelError — a weight is missing or has another shape.
    """
    match config.backend:
        case SpeculativeBackend.DFLASH:
            return DflashDrafter(config, reader, target, head)
        case SpeculativeBackend.DFLASH2:
            return Dflash2Drafter(config, reader, target, head)
        case _:
            return MtpDrafter(config.layers, reader, target, head)
