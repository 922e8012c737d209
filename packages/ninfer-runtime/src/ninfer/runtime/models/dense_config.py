"""The part of a decoder's configuration that dense and hybrid models spell alike."""

from __future__ import annotations

from ninfer.runtime.models.config import DecoderConfig, RopeConfig, RopeKind
from ninfer.runtime.models.config_fields import ConfigFields

FULL_ATTENTION = "full_attention"


def dense_config(fields: ConfigFields, family: str, rotary_part: float = 1.0) -> DecoderConfig:
    """Return the shape of a dense decoder whose heads turn by their first ``rotary_part``.

    Raises: ModelError — a field is missing, has another type, or asks for what is not served.
    """
    fields.allow("hidden_act", ("silu",))
    if fields.has("quantization_config"):
        raise fields.fail("quantization_config", "is not served: weights are read as they stand")
    _require_whole_context(fields)
    hidden, heads = (fields.positive(n, int) for n in ("hidden_size", "num_attention_heads"))
    kv_heads = fields.get_positive("num_key_value_heads", int, heads)
    if heads % kv_heads:
        raise fields.fail("num_key_value_heads", f"{kv_heads} does not divide {heads} heads")
    head_dim = fields.get_positive("head_dim", int, hidden // heads)
    rotary_dim = int(head_dim * rotary_part)
    if rotary_part == 1.0 and head_dim % 2:
        raise fields.fail("head_dim", f"{head_dim} is not even: halves turn against each other")
    attention_bias = fields.get("attention_bias", bool, False)
    return DecoderConfig(
        family=family,
        hidden=hidden,
        layers=fields.positive("num_hidden_layers", int),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn=fields.positive("intermediate_size", int),
        vocab_rows=fields.positive("vocab_size", int),
        norm_eps=fields.get_positive("rms_norm_eps", float, 1e-6),
        rope=_rope(fields, rotary_dim),
        context_tokens=fields.positive("max_position_embeddings", int),
        qkv_bias=family == "qwen2" or attention_bias,
        output_bias=family != "qwen2" and attention_bias,
        mlp_bias=fields.get("mlp_bias", bool, False),
        qk_norm=family == "qwen3",
        tied_embeddings=fields.get("tie_word_embeddings", bool, False),
    )


def require_attention(fields: ConfigFields) -> None:
    """Check that ``layer_types``, where it is there, names nothing but attention over everything.

    Raises: ModelError — a layer is of another kind.
    """
    for kind in fields.texts("layer_types") if fields.has("layer_types") else ():
        if kind != FULL_ATTENTION:
            raise fields.fail("layer_types", f"{kind!r} is not served (served: {FULL_ATTENTION})")


def _require_whole_context(fields: ConfigFields) -> None:
    """Refuse layers that see a window only, unless the window holds every context there is."""
    fields.allow("use_sliding_window", (False,))
    if fields.has("sliding_window") and not fields.has("use_sliding_window"):
        window = fields.require("sliding_window", int)
        context = fields.require("max_position_embeddings", int)
        if window < context:
            fact = f"{window} of {context} tokens is not served: layers see the whole context"
            raise fields.fail("sliding_window", fact)


def _rope(fields: ConfigFields, rotary_dim: int) -> RopeConfig:
    """Read ``rope_parameters`` (new checkpoints) or ``rope_theta`` with ``rope_scaling``.

    Where both are there readers differ in which of them they follow, so they must say the same.
    """
    if not fields.are_same("rope_parameters", "rope_scaling"):
        raise fields.fail("rope_scaling", "is another than rope_parameters, and both are there")
    name = "rope_parameters" if fields.has("rope_parameters") else "rope_scaling"
    scaling = fields.nested(name)
    theta = scaling.get_positive(
        "rope_theta", float, fields.get_positive("rope_theta", float, 10000.0)
    )
    kind = scaling.get("rope_type", str, scaling.get("type", str, "default"))
    if kind == "default":
        return RopeConfig(theta, rotary_dim)
    if kind == "linear":
        return RopeConfig(theta, rotary_dim, RopeKind.LINEAR, scaling.positive("factor", float))
    if kind == "llama3":
        return _llama3_rope(scaling, theta, rotary_dim)
    if kind == "factors":
        factors = scaling.numbers("factors")
        if len(factors) != rotary_dim // 2:
            raise scaling.fail("factors", f"{len(factors)} numbers, not {rotary_dim // 2}")
        if min(factors) <= 0:
            raise scaling.fail("factors", f"{min(factors)} is not positive")
        return RopeConfig(theta, rotary_dim, RopeKind.FACTORS, factors=factors)
    served = ", ".join(k.value for k in RopeKind)
    raise scaling.fail("rope_type", f"{kind!r} is not served (served: {served})")


def _llama3_rope(scaling: ConfigFields, theta: float, rotary_dim: int) -> RopeConfig:
    factor = scaling.positive("factor", float)
    low, high = (scaling.positive(f"{name}_freq_factor", float) for name in ("low", "high"))
    if high <= low:
        raise scaling.fail("high_freq_factor", f"{high} is not above low_freq_factor {low}")
    return RopeConfig(
        theta,
        rotary_dim,
        RopeKind.LLAMA3,
        factor=factor,
        low_freq_factor=low,
        high_freq_factor=high,
        original_context=scaling.positive("original_max_position_embeddings", int),
    )
