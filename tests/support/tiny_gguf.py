"""A small GGUF file written by the format's own library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.torch import load_file

from support.tiny_models import SPECIAL, byte_tokenizer

MERGES = ("t h", "th e", "Ġ the")
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"
_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_gguf(checkpoint: Path, path: Path, **overrides: Any) -> Path:
    """Write a checkpoint folder's weights and tokenizer as GGUF, matrices in Q8_0.

    ``overrides`` replace metadata: ``pre``, ``architecture``, ``scaling``.
    """
    config = json.loads((checkpoint / "config.json").read_text())
    arch = config["model_type"]
    writer = gguf.GGUFWriter(path, overrides.get("architecture", arch))
    writer.add_name("tiny")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    if "scaling" in overrides:
        writer.add_rope_scaling_type(overrides["scaling"])
        writer.add_rope_scaling_factor(2.0)
    _add_tokenizer(writer, overrides.get("pre", "gpt-2"))
    for name, tensor in load_file(checkpoint / "model.safetensors").items():
        rows = tensor.numpy()
        if arch == "llama" and ("q_proj" in name or "k_proj" in name):
            rows = _paired(rows, rows.shape[0] // config["head_dim"])
        if rows.ndim == 2:
            quantised = gguf.quantize(rows, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(_name(name), quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(_name(name), rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: gguf.GGUFWriter, pre: str) -> None:
    ids = byte_tokenizer().get_vocab()
    pieces = [*sorted(ids, key=lambda piece: ids[piece]), *(m.replace(" ", "") for m in MERGES)]
    kinds = [3 if piece in SPECIAL else 4 if piece == "<tool_call>" else 1 for piece in pieces]
    unused = [f"[PAD{i}]" for i in range(len(pieces), 320)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(pieces + unused)
    writer.add_token_types(kinds + [5] * len(unused))
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(ids["<|im_end|>"])
    writer.add_bos_token_id(ids["<|im_start|>"])
    writer.add_chat_template(TEMPLATE)


def _name(name: str) -> str:
    outer = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if name in outer:
        return outer[name]
    _, _, layer, rest = name.split(".", 3)
    stem, _, suffix = rest.rpartition(".")
    return f"blk.{layer}.{_NAMES[stem]}.{suffix}"


def _paired(rows: np.ndarray, heads: int) -> np.ndarray:
    """Put the rows of a llama head into the order of adjacent pairs."""
    halves = rows.reshape(heads, 2, -1, *rows.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)
