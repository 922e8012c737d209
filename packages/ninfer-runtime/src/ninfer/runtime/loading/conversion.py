"""One GGUF file rewritten as a Hugging Face checkpoint folder in bfloat16.

Matrices become bfloat16; vectors stay float32, because norms are read in float32 anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file

from ninfer.runtime.loading.gguf_config import architecture_of, end_ids, model_config
from ninfer.runtime.loading.gguf_file import GgufFile
from ninfer.runtime.loading.gguf_tokenizer import GgufTokenizer, build_tokenizer
from ninfer.runtime.loading.gguf_weights import (
    ROPE_FACTORS,
    checkpoint_name,
    halves_from_pairs,
    is_rotated,
)
from ninfer.runtime.loading.progress import LoadStage, Progress, report
from ninfer.runtime.models.config import DecoderConfig
from ninfer.runtime.models.registry import decoder_config

SHARD_BYTES = 2 << 30
"""Weights of one file, about; what a conversion holds in memory at most."""


def convert(path: Path, folder: Path, progress: Progress | None = None) -> None:
    """Write the checkpoint folder of a GGUF file.

    Effects: ``folder`` exists and is empty before; afterwards it holds the whole checkpoint.
    Raises:  ModelError — the file cannot be parsed or is not served.
    """
    report(progress, LoadStage.PARSE, 0, 1)
    file = GgufFile(path)
    config = model_config(file)
    shape = decoder_config(config, f"{path}: as config.json")
    report(progress, LoadStage.TOKENIZER, 0, 1)
    built = build_tokenizer(file)
    _write_json(folder / "config.json", config)
    _write_tokenizer(file, built, folder)
    _write_weights(file, shape, folder, progress)


def _write_tokenizer(file: GgufFile, built: GgufTokenizer, folder: Path) -> None:
    spelling = {token: text for text, token in built.control.items()}
    facts: dict[str, object] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    for name in ("bos", "eos"):
        token = file.optional(f"tokenizer.ggml.{name}_token_id", int)
        if token is not None and token in spelling:
            facts[f"{name}_token"] = spelling[token]
    template = file.optional("tokenizer.chat_template", str)
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    (folder / "tokenizer.json").write_text(built.tokenizer.to_str(), encoding="utf-8")
    _write_json(folder / "tokenizer_config.json", facts)
    ends = end_ids(file, built.control)
    if not ends:
        raise file.fail("tokenizer.ggml.eos_token_id", "no id ends an answer")
    _write_json(folder / "generation_config.json", {"eos_token_id": ends})


def _write_weights(
    file: GgufFile, shape: DecoderConfig, folder: Path, progress: Progress | None
) -> None:
    index: dict[str, str] = {}
    shard: dict[str, torch.Tensor] = {}
    shard_bytes = 0
    for name, tensor in _checkpoint_tensors(file, shape, progress):
        if shard and shard_bytes + tensor.nbytes > SHARD_BYTES:
            _write_shard(folder, shard, index)
            shard, shard_bytes = {}, 0
        shard[name] = tensor
        shard_bytes += tensor.nbytes
    _write_shard(folder, shard, index)
    if len(set(index.values())) == 1:
        (folder / next(iter(index.values()))).rename(folder / "model.safetensors")
    else:
        _write_json(folder / "model.safetensors.index.json", {"weight_map": index})


def _write_shard(folder: Path, shard: dict[str, torch.Tensor], index: dict[str, str]) -> None:
    name = f"model-{len(set(index.values())) + 1:05}.safetensors"
    save_file(shard, folder / name, metadata={"format": "pt"})
    index.update(dict.fromkeys(shard, name))


def _checkpoint_tensors(
    file: GgufFile, shape: DecoderConfig, progress: Progress | None
) -> Iterator[tuple[str, torch.Tensor]]:
    arch = architecture_of(file)
    names = list(file.tensor_names())
    for done, name in enumerate(names):
        report(progress, LoadStage.CONVERT, done, len(names))
        target = checkpoint_name(name)
        if target is None:
            if name == ROPE_FACTORS:
                continue
            raise file.fail(name, "the tensor has no place in a served model")
        rows = file.tensor(name)
        if is_rotated(arch, name):
            heads = shape.heads if ".attn_q." in name else shape.kv_heads
            if rows.shape[0] != heads * shape.head_dim:
                fact = f"{rows.shape[0]} rows, not {heads} heads of {shape.head_dim}"
                raise file.fail(name, fact)
            rows = halves_from_pairs(rows, heads)
        # An unquantised tensor is a read-only view of the mapped file, which torch will not take.
        tensor = torch.from_numpy(rows if rows.flags.writeable else rows.copy())
        yield target, tensor.to(torch.bfloat16) if tensor.ndim == 2 else tensor
    report(progress, LoadStage.CONVERT, len(names), len(names))


def _write_json(path: Path, value: dict[str, object]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")
