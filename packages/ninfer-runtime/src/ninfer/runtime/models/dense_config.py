"""The part of a decoder's configuration that dense and hybrid models spell alike."""

from __future__ import annotations

from ninfer.runtime.models.config import DecoderConfig, RopeConfig, RopeKind
from ninfer.runtime.models.config_fields import ConfigFields


def dense_config(fields: ConfigFields, family: str, rotary_part: float = 1.0) -> DecoderConfig:
    """Return the shape of a dense decoder whose heads turn by their first ``rotary_part``.

    Raises: ModelError — a field is missing, has another type, or asks for what is not served.
    """
    fields.allow("hidden_act", ("silu",))
    _require_whole_context(fields)
    hidden, heads = fields.require("hidden_size", int), fields.require("num_attention_heads", int)
    kv_heads = fields.get("num_key_value_heads", int, heads)
    if heads <= 0 or kv_heads <= 0 or heads % kv_heads:
        raise fields.fail("num_key_value_heads", f"{kv_heads} does not divide {heads} heads")
    head_dim = fields.get("head_dim", int, hidden // heads)
    attention_bias = fields.get("attention_bias", bool, False)
    return DecoderConfig(
        family=family,
        hidden=hidden,
        layers=fields.require("num_hidden_layers", int),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn=fields.require("intermediate_size", int),
        vocab_rows=fields.require("vocab_size", int),
        norm_eps=fields.get("rms_norm_eps", float, 1e-6),
        rope=_rope(fields, int(head_dim * rotary_part)),
        context_tokens=fields.require("max_position_embeddings", int),
        qkv_bias=family == "qwen2" or attention_bias,
        output_bias=family != "qwen2" and attention_bias,
        mlp_bias=fields.get("mlp_bias", bool, False),
        qk_norm=family == "qwen3",
        tied_embeddings=fields.get("tie_word_embeddings", bool, False),
    )


def _require_whole_context(fields: ConfigFields) -> None:
    """Refuse layers that see a window only, unless the window holds every context there is."""
    fields.allow("use_sliding_window", (False,))
    if fields.has("sliding_window") and not fields.has("use_sliding_window"):
        window = fields.require("sliding_window", int)
        context = fields.require("max_position_embeddings", int)
        if window < context:
            fact = f"{window} of {context} tokens is not served: layers see the whole context"
            raise fields.fail("sliding_window", fact)
    if fields.has("layer_types") and "sliding_attention" in fields.texts("layer_types"):
        raise fields.fail("layer_types", "'sliding_attention' is not served")


def _rope(fields: ConfigFields, rotary_dim: int) -> RopeConfig:
    """Read ``rope_parameters`` (new checkpoints) or ``rope_theta`` with ``rope_scaling``."""
    name = "rope_parameters" if fields.has("rope_parameters") else "rope_scaling"
    scaling = fields.nested(name)
    theta = scaling.get("rope_theta", float, fields.get("rope_theta", float, 10000.0))
    kind = scaling.get("rope_type", str, scaling.get("type", str, "default"))
    if kind == "default":
        return RopeConfig(theta, rotary_dim)
    if kind == "linear":
        return RopeConfig(theta, rotary_dim, RopeKind.LINEAR, scaling.require("factor", float))
    if kind == "llama3":
        return RopeConfig(
            theta,
            rotary_dim,
            RopeKind.LLAMA3,
            factor=scaling.require("factor", float),
            low_freq_factor=scaling.require("low_freq_factor", float),
            high_freq_factor=scaling.require("high_freq_factor", float),
            original_context=scaling.require("original_max_position_embeddings", int),
        )
    if kind == "factors":
        factors = scaling.numbers("factors")
        if len(factors) != rotary_dim // 2:
            raise scaling.fail("factors", f"{len(factors)} numbers, not {rotary_dim // 2}")
        return RopeConfig(theta, rotary_dim, RopeKind.FACTORS, factors=factors)
    served = ", ".join(k.value for k in RopeKind)
    raise scaling.fail("rope_type", f"{kind!r} is not served (served: {served})")
