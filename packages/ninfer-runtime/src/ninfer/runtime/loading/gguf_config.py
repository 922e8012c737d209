"""GGUF metadata as the ``config.json`` and ``generation_config.json`` of a checkpoint."""

from __future__ import annotations

from ninfer.runtime.loading.gguf_file import GgufFile
from ninfer.runtime.loading.gguf_weights import ROPE_FACTORS

Json = dict[str, object]

_CLASSES = {
    "llama": ("llama", "LlamaForCausalLM"),
    "qwen2": ("qwen2", "Qwen2ForCausalLM"),
    "qwen3": ("qwen3", "Qwen3ForCausalLM"),
}
_END_SPELLINGS = frozenset({"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>"})
"""Control ids that end an answer although the metadata has room for only one of them."""


def architecture_of(file: GgufFile) -> str:
    """Return the architecture of a file.

    Raises: ModelError — it is not one that is served.
    """
    name = file.require("general.architecture", str)
    if name not in _CLASSES:
        served = ", ".join(_CLASSES)
        raise file.fail("general.architecture", f"{name!r} is not served (served: {served})")
    if file.optional(f"{name}.expert_count", int):
        raise file.fail(f"{name}.expert_count", "mixtures of experts are not served")
    parts = file.optional("split.count", int) or 1
    if parts > 1:
        raise file.fail("split.count", f"one of {parts} files: files in parts are not served")
    return name


def model_config(file: GgufFile) -> Json:
    """Return what ``config.json`` would say.

    Raises: ModelError — a field is missing, has another type, or is not served.
    """
    arch = architecture_of(file)
    model_type, class_name = _CLASSES[arch]
    hidden = file.positive(f"{arch}.embedding_length")
    heads = file.positive(f"{arch}.attention.head_count")
    head_dim = file.optional(f"{arch}.attention.key_length", int) or hidden // heads
    config: Json = {
        "architectures": [class_name],
        "model_type": model_type,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": file.positive(f"{arch}.feed_forward_length"),
        "num_hidden_layers": file.positive(f"{arch}.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": file.optional(f"{arch}.attention.head_count_kv", int) or heads,
        "head_dim": head_dim,
        "max_position_embeddings": file.positive(f"{arch}.context_length"),
        "rms_norm_eps": file.require(f"{arch}.attention.layer_norm_rms_epsilon", float),
        "rope_theta": file.optional(f"{arch}.rope.freq_base", float) or 10000.0,
        "tie_word_embeddings": not file.has_tensor("output.weight"),
        "vocab_size": int(file.tensor_shape("token_embd.weight")[0]),
        "attention_bias": arch == "llama" and file.has_tensor("blk.0.attn_q.bias"),
        "dtype": "bfloat16",
        "_name_or_path": file.optional("general.name", str) or file.path.stem,
    }
    scaling = _rope_scaling(file, arch)
    if scaling is not None:
        config["rope_scaling"] = scaling
    return config


def _rope_scaling(file: GgufFile, arch: str) -> Json | None:
    if file.has_tensor(ROPE_FACTORS):
        return {"rope_type": "factors", "factors": file.tensor(ROPE_FACTORS).tolist()}
    kind = file.optional(f"{arch}.rope.scaling.type", str) or "none"
    if kind == "none":
        return None
    if kind == "linear":
        return {
            "rope_type": "linear",
            "factor": file.require(f"{arch}.rope.scaling.factor", float),
        }
    raise file.fail(f"{arch}.rope.scaling.type", f"{kind!r} is not served (served: none, linear)")


def end_ids(file: GgufFile, control: dict[str, int]) -> list[int]:
    """Return the ids that end an answer, the metadata's own first."""
    named = [
        file.optional(f"tokenizer.ggml.{name}_token_id", int) for name in ("eos", "eot", "eom")
    ]
    spelled = [token for text, token in control.items() if text in _END_SPELLINGS]
    return list(dict.fromkeys([token for token in named if token is not None] + sorted(spelled)))
