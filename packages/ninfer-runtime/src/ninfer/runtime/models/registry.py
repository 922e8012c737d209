"""From a checkpoint's ``config.json`` to a decoder's shape; every refusal names the field."""

from __future__ import annotations

from collections.abc import Mapping

from ninfer.runtime.models.config import DecoderConfig
from ninfer.runtime.models.config_fields import ConfigFields
from ninfer.runtime.models.dense_config import dense_config, require_attention
from ninfer.runtime.models.hybrid_config import hybrid_config

HYBRIDS = ("qwen3_5", "qwen3_5_text")
SERVED = ("llama", "qwen2", "qwen3", *HYBRIDS)
"""The values of ``model_type`` that are served."""


def decoder_config(config: Mapping[str, object], source: str) -> DecoderConfig:
    """Return the shape that a ``config.json`` describes; ``source`` names the file in errors.

    Raises: ModelError — a field is missing, has another type, or asks for what is not served.
    """
    fields = ConfigFields(config, source)
    family = fields.require("model_type", str)
    if family not in SERVED:
        raise fields.fail("model_type", f"{family!r} is not served (served: {', '.join(SERVED)})")
    if family in HYBRIDS:
        return hybrid_config(fields, family)
    require_attention(fields)
    return dense_config(fields, family)
