"""Which tokens may follow in compact JSON, as tables that a device reads for many rows at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from drafters.compact_json import (
    FORM_START,
    FREE_START,
    KEYS_LEFT,
    OVER,
    WORDS,
    State,
    all_states,
    walk,
    with_keys_over,
)

KEY = State(KEYS_LEFT, "in key")
"""Where a form's key is written."""
_OUTSIDE = frozenset(b'{}[]:,"-+.0123456789eE')


@dataclass(frozen=True, slots=True)
class JsonTables:
    """States of rows and what tokens do with them.

    A row is in a state of JSON and, where a form forces a text, in a state of that text beside it:
    one for each of its bytes that is next, 0 without any. A text is spelled as the model likes,
    and a token may go beyond it as far as JSON goes.

    Shapes: allowed bool[1 + J + N, V], a free row, J states of JSON, N of forced texts; after
            int64[J, V]; over int64[J], the states whose form has had all keys; begins bool[V],
            tokens that end with a quote; ends int64[N], where a text's states end; lengths
            int64[V], a token's bytes.
    """

    number: Mapping[State, int]
    starts: Mapping[str, int]
    allowed: Tensor
    after: Tensor
    over: Tensor
    begins: Tensor
    ends: Tensor
    lengths: Tensor

    def start(self, has_keys: bool) -> int:
        """Return the state before an answer."""
        return self.number[FORM_START if has_keys else FREE_START]

    def masks(self, json: Tensor, forced: Tensor, is_held: Tensor) -> Tensor:
        """Return what rows may take, bool[B, V]."""
        held = torch.where(forced > 0, 1 + len(self.over) + forced, 1 + json)
        return self.allowed[torch.where(is_held, held, 0)]

    def moved(
        self, json: Tensor, forced: Tensor, key: Tensor, is_last: Tensor, token: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return both states after tokens, and whether a form's key begins, which is ``key``."""
        after = self.after[json, token].clamp_min(0)
        begins = self.begins[token] & (after == self.number[KEY]) & (forced == 0)
        following = forced + self.lengths[token]
        goes_on = (forced > 0) & (following < self.ends[forced])
        forced = torch.where(begins, key, torch.where(goes_on, following, 0))
        return torch.where(begins & is_last, self.over[after], after), forced, begins


def json_tables(
    vocabulary: Sequence[bytes | None],
    ends: Sequence[int],
    device: torch.device,
    texts: Sequence[str] = (),
) -> JsonTables:
    """Build the tables; None stands for tokens that are no text, ``texts`` are what forms force."""
    states = all_states()
    number = {state: place for place, state in enumerate(states)}
    after = torch.full((len(states), len(vocabulary)), -1)
    plain = [t for t, text in enumerate(vocabulary) if text and walk(KEY, text) == KEY]
    others = [
        (token, text)
        for token, text in enumerate(vocabulary)
        if text and (b'"' in text or _OUTSIDE.issuperset(text) or text in WORDS)
    ]
    for state, place in number.items():
        if state.phase in ("in key", "in text"):
            after[place, plain] = place
        for token, text in others:
            if (then := walk(state, text)) is not None:
                after[place, token] = number[then]
    over = torch.tensor([number[with_keys_over(state)] for state in states])
    starts, text_ends, forcing = _forced(vocabulary, texts)
    free = torch.ones((1, len(vocabulary)), dtype=torch.bool)
    allowed = torch.cat((free, after >= 0, forcing))
    allowed[1 + number[OVER], list(ends)] = True
    begins = torch.tensor([(text or b"").endswith(b'"') for text in vocabulary])
    lengths = torch.tensor([len(text or b"") for text in vocabulary])
    tables = (allowed, after, over, begins, torch.tensor(text_ends), lengths)
    return JsonTables(number, starts, *(table.to(device) for table in tables))


def _forced(
    vocabulary: Sequence[bytes | None], texts: Sequence[str]
) -> tuple[dict[str, int], list[int], Tensor]:
    """Return where texts begin and end among their states, and what each state allows.

    A text that opens a value stands at the beginning, any other where a key is written.
    """
    spelled = sorted((text, token) for token, text in enumerate(vocabulary) if text)
    whole: dict[bytes, list[int]] = {}
    for text, token in spelled:
        whole.setdefault(text, []).append(token)
    starts: dict[str, int] = {}
    ends = [0]
    rows: list[list[int]] = [[]]
    for forced in dict.fromkeys(texts):
        raw = forced.encode()
        state: State | None = KEY
        if forced[0] in "{[":
            state = FORM_START if len(raw) > len(b'{"') else FREE_START
        starts[forced] = len(ends)
        ends += [len(ends) + len(raw)] * len(raw)
        for place in range(len(raw)):
            rest = raw[place:]
            chosen = [t for n in range(1, len(rest)) for t in whole.get(rest[:n], ())]
            for text, token in spelled[bisect_left(spelled, (rest, -1)) :]:
                if not text.startswith(rest):
                    break
                if state is not None and walk(state, text) is not None:
                    chosen.append(token)
            rows.append(chosen)
            state = None if state is None else walk(state, rest[:1])
    allowed = torch.zeros((len(rows), len(vocabulary)), dtype=torch.bool)
    for place, chosen in enumerate(rows):
        allowed[place, chosen] = True
    return starts, ends, allowed


def token_bytes(pieces: Sequence[str | None]) -> list[bytes | None]:
    """Return what byte-level tokens spell; None where a piece is not spelled in bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    byte_of = {chr(byte): byte for byte in printable}
    byte_of |= {chr(0x100 + place): byte for place, byte in enumerate(others)}
    return [
        bytes(byte_of[c] for c in piece) if piece and byte_of.keys() >= set(piece) else None
        for piece in pieces
    ]
