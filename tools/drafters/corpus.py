"""The training text: dialogues that the target wrote, as token ids with the answer's place."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

GREEDY, JSON = 1, 2
"""Flags of a dialogue: written without chance; held to compact JSON."""
COLUMN_STEP = 32
"""Batches are padded to multiples of this: few shapes, and masks that fast attention takes."""
SORTED_BATCHES = 64
"""Batches whose dialogues are sorted by length together."""


class Batch(NamedTuple):
    """Padded dialogues.

    Shapes: tokens int64[B, T]; answered bool[B, T], where an answer's token stands; is_json
            bool[B], whose answer was held to JSON.
    """

    tokens: Tensor
    answered: Tensor
    is_json: Tensor


@dataclass(frozen=True, slots=True)
class Dialogues:
    """Many dialogues, one behind the other.

    Shapes: tokens int32[N]; lengths, answers and flags int64[D] on the host.
    """

    tokens: Tensor
    lengths: Tensor
    answers: Tensor
    flags: Tensor

    @classmethod
    def of(cls, texts: Sequence[Tensor], answers: Sequence[int], flags: Sequence[int]) -> Dialogues:
        """Join single dialogues."""
        lengths = torch.tensor([len(text) for text in texts])
        joined = torch.cat(list(texts)).to(torch.int32) if texts else torch.zeros(0).int()
        return cls(joined, lengths, torch.tensor(answers), torch.tensor(flags))

    @classmethod
    def load(cls, files: Sequence[Path]) -> Dialogues:
        """Read files and put them one behind the other."""
        parts = [load_file(str(file)) for file in files]
        return cls(
            *(torch.cat([p[n] for p in parts]) for n in ("tokens", "lengths", "answers", "flags"))
        )

    def save(self, file: Path) -> None:
        """Write a file that ``load`` reads."""
        names = ("tokens", "lengths", "answers", "flags")
        save_file({name: getattr(self, name).contiguous() for name in names}, str(file))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def answer_tokens(self) -> int:
        """Return how many tokens the answers have."""
        return int((self.lengths - self.answers).sum())

    def offsets(self) -> Tensor:
        """Return where every dialogue begins."""
        return self.lengths.cumsum(0) - self.lengths

    def at(self, index: int) -> tuple[list[int], int]:
        """Return one dialogue's tokens and where its answer begins."""
        begin = int(self.offsets()[index])
        return self.tokens[begin : begin + int(self.lengths[index])].tolist(), int(
            self.answers[index]
        )

    def where(self, chosen: Tensor) -> Dialogues:
        """Return the chosen ones; ``chosen`` is bool[D]."""
        kept = torch.repeat_interleave(chosen, self.lengths)
        return Dialogues(
            self.tokens[kept], self.lengths[chosen], self.answers[chosen], self.flags[chosen]
        )

    def held_out(self, parts: int) -> Tensor:
        """Return which dialogues are kept from training, bool[D], about one of ``parts``.

        The prompt decides, so that no prompt is on both sides.
        """
        chosen = []
        raw = self.tokens.numpy()
        for begin, answer in zip(self.offsets().tolist(), self.answers.tolist(), strict=True):
            chosen.append(zlib.crc32(raw[begin : begin + answer].tobytes()) % parts == 0)
        return torch.tensor(chosen, dtype=torch.bool)

    def frequent(self, limit: int) -> tuple[Tensor, float]:
        """Return the ids that answers use most, ascending, and the share of their tokens."""
        places = torch.arange(len(self.tokens)) - torch.repeat_interleave(
            self.offsets(), self.lengths
        )
        in_answer = places >= torch.repeat_interleave(self.answers, self.lengths)
        counts = self.tokens[in_answer].to(torch.int64).bincount()
        values, ids = counts.topk(min(limit, int((counts > 0).sum())))
        return ids.sort().values, float(values.sum() / counts.sum())


class Batches:
    """Cuts dialogues into batches of about equal size, in an order of its own every time."""

    def __init__(self, dialogues: Dialogues, batch_tokens: int, device: torch.device) -> None:
        self._tokens = dialogues.tokens.to(device)
        self._lengths, self._answers = dialogues.lengths, dialogues.answers
        self._is_json = (dialogues.flags & JSON) > 0
        self._offsets = dialogues.offsets()
        self._batch_tokens, self._device = batch_tokens, device

    def once(self, source: random.Random) -> Iterator[Batch]:
        """Yield every dialogue once."""
        yield from map(self.batch, self.groups(source))

    def groups(self, source: random.Random) -> list[list[int]]:
        """Return which dialogues stand together, every one once."""
        order = list(range(len(self._lengths)))
        source.shuffle(order)
        lengths = self._lengths.tolist()
        groups: list[list[int]] = []
        mean = max(1, sum(lengths) // max(len(lengths), 1))
        together = SORTED_BATCHES * max(1, self._batch_tokens // mean)
        for first in range(0, len(order), together):
            part = sorted(order[first : first + together], key=lengths.__getitem__, reverse=True)
            while part:
                rows = max(1, self._batch_tokens // _stepped(lengths[part[0]]))
                groups.append(part[:rows])
                part = part[rows:]
        source.shuffle(groups)
        return groups

    def batch(self, group: Sequence[int]) -> Batch:
        """Return some dialogues side by side."""
        chosen = torch.tensor(group)
        lengths, answers, offsets = (
            values[chosen].to(self._device)[:, None]
            for values in (self._lengths, self._answers, self._offsets)
        )
        longest = _stepped(int(self._lengths[chosen].max()))
        columns = torch.arange(longest, device=self._device)[None]
        is_text = columns < lengths
        places = (offsets + columns).masked_fill(~is_text, 0)
        tokens = self._tokens[places].to(torch.int64).masked_fill(~is_text, 0)
        is_json = self._is_json[chosen].to(self._device)
        return Batch(tokens, is_text & (columns >= answers), is_json)


def _stepped(columns: int) -> int:
    return -(-columns // COLUMN_STEP) * COLUMN_STEP
