"""A byte-level BPE tokenizer rebuilt from GGUF metadata."""

from __future__ import annotations

from typing import NamedTuple

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import PreTokenizer

from ninfer.runtime.loading.gguf_file import GgufFile

_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5
_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2_SPLIT = _LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")


class GgufTokenizer(NamedTuple):
    """A tokenizer and its control ids by spelling."""

    tokenizer: Tokenizer
    control: dict[str, int]


def build_tokenizer(file: GgufFile) -> GgufTokenizer:
    """Return the tokenizer that a file describes.

    Raises: ModelError — another model than BPE, an unknown pre-tokenizer, or broken tables.
    """
    model = file.require("tokenizer.ggml.model", str)
    if model != "gpt2":
        raise file.fail("tokenizer.ggml.model", f"{model!r} is not served (served: gpt2)")
    flavour = file.require("tokenizer.ggml.pre", str)
    pieces = file.strings("tokenizer.ggml.tokens")
    kinds = file.integers("tokenizer.ggml.token_type")
    if len(kinds) != len(pieces):
        raise file.fail("tokenizer.ggml.token_type", f"{len(kinds)} types, {len(pieces)} tokens")
    last = max((i for i, kind in enumerate(kinds) if kind != _UNUSED), default=-1)
    vocabulary = {piece: i for i, piece in enumerate(pieces[: last + 1])}
    if len(vocabulary) != last + 1:
        raise file.fail("tokenizer.ggml.tokens", "a spelling occurs twice")
    tokenizer = Tokenizer(
        BPE(
            vocab=vocabulary,
            merges=_merges(file, vocabulary),
            fuse_unk=False,
            ignore_merges=flavour == "llama-bpe",
        )
    )
    if flavour == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = _pre_tokenizer(file, flavour)
    tokenizer.decoder = decoders.ByteLevel()
    for kind, special in ((_CONTROL, True), (_USER_DEFINED, False)):
        added = [p for p, k in zip(pieces, kinds, strict=True) if k == kind]
        tokenizer.add_tokens([AddedToken(p, special=special, normalized=False) for p in added])
    control = {p: i for i, (p, k) in enumerate(zip(pieces, kinds, strict=True)) if k == _CONTROL}
    return GgufTokenizer(tokenizer, control)


def _merges(file: GgufFile, vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    merges: list[tuple[str, str]] = []
    for line in file.strings("tokenizer.ggml.merges"):
        left, _, right = line.partition(" ")
        if left not in vocabulary or right not in vocabulary or left + right not in vocabulary:
            raise file.fail("tokenizer.ggml.merges", f"{line!r} joins no tokens of the vocabulary")
        merges.append((left, right))
    return merges


def _pre_tokenizer(file: GgufFile, flavour: str) -> PreTokenizer:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if flavour in ("gpt-2", "default"):
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if flavour in ("smollm", "smollm2"):
        digits = pre_tokenizers.Digits(individual_digits=True)
        spelled = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        return pre_tokenizers.Sequence([digits, spelled])
    splits = {"qwen2": _QWEN2_SPLIT, "llama-bpe": _LLAMA3_SPLIT}
    if flavour not in splits:
        served = "gpt-2, default, smollm, qwen2, llama-bpe"
        raise file.fail("tokenizer.ggml.pre", f"{flavour!r} is not served (served: {served})")
    split = pre_tokenizers.Split(Regex(splits[flavour]), behavior="isolated", invert=False)
    return pre_tokenizers.Sequence([split, byte_level])
