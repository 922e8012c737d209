"""Hugging Face tokenizers to the vocabulary: raw bytes and class of every id.

Reads a tokenizer object that somebody else made; imports no tokenizer library. Bytes are those that
the tokenizer's own decoder would write for a token inside a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ninfer.contract import ModelError, TokenVocabulary

Spelling = Callable[[str], bytes]

_BYTE_TOKEN = re.compile("<0x([0-9A-Fa-f]{2})>")


def vocabulary_from_tokenizer(
    tokenizer: Any, *, eos_ids: Sequence[int] | None = None, domain: int | None = None
) -> TokenVocabulary:
    """Return the vocabulary of a ``tokenizers.Tokenizer`` or a transformers fast tokenizer.

    Math:    special added tokens and the unknown token are CONTROL; other added tokens are TEXT,
             spelled as they stand; ids without a token, up to ``domain``, are UNUSED.
    Units:   ``domain`` is V, the ids a model can produce; by default the largest id + 1.
    Raises:  ModelError — the decoder is neither byte-level nor SentencePiece-like, no EOS is known,
             or an id lies outside the domain.
    """
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    ids = backend.get_vocab(with_added_tokens=True)
    added = backend.get_added_tokens_decoder()
    token_domain = _token_domain(max(ids.values(), default=-1) + 1, domain)
    ends = _checked_ends(_ends(tokenizer) if eos_ids is None else tuple(eos_ids), token_domain)
    pieces = [b""] * token_domain
    spell = _spelling(backend)
    for text, token in ids.items():
        pieces[token] = text.encode() if token in added else spell(text)
    control = [token for token, entry in added.items() if entry.special]
    return TokenVocabulary.build(pieces, eos=ends, control=control + _unknown_ids(backend, ids))


def _unknown_ids(backend: Any, ids: Mapping[str, int]) -> list[int]:
    """Return the id that stands for text without tokens, if the model has one."""
    if hasattr(backend.model, "unk_token"):
        found = ids.get(backend.model.unk_token)
    else:  # a Unigram model keeps the id, in its serialised form only
        found = json.loads(backend.model.__getstate__()).get("unk_id")
    return [] if found is None else [found]


def _token_domain(known: int, domain: int | None) -> int:
    if domain is None:
        return known
    if domain < known:
        raise ModelError(f"tokenizer: {known} ids do not fit a token domain of {domain}")
    return domain


def _ends(tokenizer: Any) -> tuple[int, ...]:
    found = getattr(tokenizer, "eos_token_id", None)
    if found is None:
        raise ModelError("tokenizer: it names no EOS; give eos_ids")
    return (found,)


def _checked_ends(ends: tuple[int, ...], token_domain: int) -> tuple[int, ...]:
    for token in ends:
        if not 0 <= token < token_domain:
            raise ModelError(f"tokenizer: EOS {token} is outside the domain of {token_domain}")
    if not ends:
        raise ModelError("tokenizer: the list of EOS ids is empty")
    return ends


def _spelling(backend: Any) -> Spelling:
    state = json.loads(backend.decoder.__getstate__()) if backend.decoder is not None else None
    steps = [] if state is None else state["decoders"] if "decoders" in state else [state]
    kinds = [step["type"] for step in steps]
    if "ByteLevel" in kinds:
        return _byte_level()
    if "Metaspace" in kinds or "ByteFallback" in kinds:
        marks = [pair for step in steps for pair in _replacements(step)]
        return _sentence_piece(marks, has_bytes="ByteFallback" in kinds)
    raise ModelError(f"tokenizer: its decoder {kinds or None} is not one whose bytes are known")


def _byte_level() -> Spelling:
    """Return the reader of byte-level tokens: each character stands for one byte.

    Math: the printable Latin-1 characters stand for themselves; the other bytes, in order, for the
          characters from U+0100 on. A token with another character is spelled as it stands.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(256)) - set(printable))
    table: dict[int, int] = {byte: byte for byte in printable}
    table.update({0x100 + number: byte for number, byte in enumerate(others)})
    # Of the Latin-1 range only printable characters have a meaning; the rest must not encode.
    table.update(dict.fromkeys(others, 0xFFFF))

    def spell(text: str) -> bytes:
        try:
            return text.translate(table).encode("latin-1")
        except UnicodeEncodeError:
            return text.encode()

    return spell


def _sentence_piece(replacements: Sequence[tuple[str, str]], *, has_bytes: bool) -> Spelling:
    """Return the reader of SentencePiece tokens: ``<0x0A>`` may be a byte, marks become blanks."""

    def spell(text: str) -> bytes:
        if has_bytes and (byte := _BYTE_TOKEN.fullmatch(text)):
            return bytes.fromhex(byte.group(1))
        for mark, content in replacements:
            text = text.replace(mark, content)
        return text.encode()

    return spell


def _replacements(step: dict[str, Any]) -> list[tuple[str, str]]:
    match step:
        case {"type": "Metaspace", "replacement": str(mark)}:
            return [(mark, " ")]
        case {"type": "Replace", "pattern": {"String": str(mark)}, "content": str(content)}:
            return [(mark, content)]
        case {"type": "Replace"}:
            raise ModelError("tokenizer: its decoder replaces by an expression")
        case _:
            return []
