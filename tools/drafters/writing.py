"""The target writes its own training text: wide batches, one captured step a token."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from drafters.target import Target, rotation


class Writer:
    """Writes ``rows`` continuations side by side into fixed buffers.

    Units: ``columns`` tokens a row, prompt included.
    """

    def __init__(self, target: Target, rows: int, columns: int) -> None:
        self._target = target
        self.columns = columns
        s, device = target.shape, target.device
        shape = (s.layers, rows, s.kv_heads, columns, s.head_dim)
        self._keys = torch.zeros(shape, device=device, dtype=target.dtype)
        self._values = torch.zeros_like(self._keys)
        self._turns = rotation(s, torch.arange(columns, device=device), target.dtype)
        self._tokens = torch.zeros((rows, columns), dtype=torch.int64, device=device)
        self._lengths = torch.ones(rows, dtype=torch.int64, device=device)
        self._column = torch.zeros(1, dtype=torch.int64, device=device)
        self._temperature = torch.ones(rows, 1, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None

    @torch.no_grad()
    def write(
        self, prompts: Sequence[Sequence[int]], temperatures: Sequence[float], ends: Sequence[int]
    ) -> list[list[int]]:
        """Return every prompt with its continuation, up to and without an end token.

        Math: the next token is argmax(logits / T + Gumbel noise); T = 0 is greedy.
        """
        self._tokens.zero_()
        for row, prompt in enumerate(prompts):
            self._tokens[row, : len(prompt)] = torch.tensor(prompt, device=self._target.device)
        lengths = [len(prompt) for prompt in prompts]
        self._lengths[: len(lengths)] = torch.tensor(lengths, device=self._target.device)
        chosen = torch.tensor(temperatures, device=self._target.device)[:, None]
        self._temperature[: len(prompts)] = chosen
        self._column.zero_()
        for _ in range(self.columns - 1):
            self._advance()
        return [
            _until_end(row[: self.columns].tolist(), length, ends)
            for row, length in zip(self._tokens[: len(prompts)].cpu(), lengths, strict=True)
        ]

    def _advance(self) -> None:
        if self._target.device.type != "cuda":
            self._step()
            return
        if self._graph is None:
            self._graph = self._captured()
        self._graph.replay()

    def _captured(self) -> torch.cuda.CUDAGraph:
        saved = self._tokens.clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        self._tokens.copy_(saved)
        self._column.zero_()
        return graph

    def _step(self) -> None:
        target = self._target
        current = self._tokens.index_select(1, self._column)
        turns = tuple(t.index_select(0, self._column) for t in self._turns)
        seen = (torch.arange(self.columns, device=target.device) <= self._column)[None]
        x = target.embedding[current]
        for layer in range(target.shape.layers):
            q, k, v = target.projections(layer, x, turns)  # type: ignore[arg-type]
            self._keys[layer].index_copy_(2, self._column, k)
            self._values[layer].index_copy_(2, self._column, v)
            attended = functional.scaled_dot_product_attention(
                q, self._keys[layer], self._values[layer], attn_mask=seen, enable_gqa=True
            )
            x = target.after_attention(layer, x, attended)
        hidden = target.normed(x, "model.norm.weight")[:, 0]
        self._choose(functional.linear(hidden, target.head).float())

    def _choose(self, logits: Tensor) -> None:
        noise = -torch.empty_like(logits).exponential_().log()
        drawn = (logits / self._temperature.clamp_min(1e-4) + noise).argmax(-1, keepdim=True)
        greedy = logits.argmax(-1, keepdim=True)
        drawn = torch.where(self._temperature > 0, drawn, greedy)
        following = self._column + 1
        given = self._tokens.index_select(1, following)
        is_given = following < self._lengths[:, None]
        self._tokens.index_copy_(1, following, torch.where(is_given, given, drawn))
        self._column += 1


def _until_end(tokens: list[int], prompt_tokens: int, ends: Sequence[int]) -> list[int]:
    for place in range(prompt_tokens, len(tokens)):
        if tokens[place] in ends:
            return tokens[: place + 1]
    return tokens
