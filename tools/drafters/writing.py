"""The target writes its own training text: wide batches, one captured step a token.

Every row goes at its own pace: a row that ends is handed out and takes the next task, and what all
tasks begin with is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from drafters.json_tables import JsonTables
from drafters.target import Target, rotation

STRIDE = 16
"""Steps between two looks at which rows have ended."""
MOST_KEYS = 8
"""Forced texts of one task behind its opening."""
ROW_NUMBERS = (
    "place", "given", "answer", "json", "is_json", "done", "ended", "forced", "next", "keys",
)  # fmt: skip
"""What is kept of every row; ``keys`` counts its keys, ``next`` is the next of them."""


class Task(NamedTuple):
    """What one row is given; with ``answer`` 0 it makes up its own user turn first.

    ``is_json`` holds the answer to compact JSON, which begins as the forced text ``opening`` says
    and goes on with the keys of the forced texts ``keys``, no more and no less, if there are any.
    Temperature 0 is greedy.
    """

    tokens: list[int]
    answer: int
    temperature: float
    is_json: bool = False
    opening: int = 0
    keys: tuple[int, ...] = ()


class Written(NamedTuple):
    """A task's tokens up to and with the end; the answer begins at ``answer``, 0 if it never did.

    Shapes: tokens int64[n] in host memory.
    """

    task: Task
    tokens: Tensor
    answer: int
    has_ended: bool


@dataclass(frozen=True, slots=True)
class Turns:
    """Where turns end and how an answer is opened after a user turn that was made up.

    Units: ``user_tokens``, the longest such prompt, in tokens from the beginning; ``json_tokens``,
           where a JSON answer is cut: what has not closed by then seldom does.
    """

    ends: Sequence[int]
    user_end: int
    opening: Sequence[int]
    user_temperature: float = 1.0
    user_tokens: int = 128
    json_tokens: int = 96


class Writer:
    """Writes ``rows`` texts side by side into fixed buffers of ``columns`` tokens."""

    def __init__(
        self,
        target: Target,
        rows: int,
        columns: int,
        turns: Turns,
        tables: JsonTables | None = None,
        prefix: Sequence[int] = (),
    ) -> None:
        self.target, self.columns, self._turns, self._tables = target, columns, turns, tables
        self._prefix = list(prefix)
        s, device = target.shape, target.device
        kept = (s.layers, rows, s.kv_heads, columns, s.head_dim)
        self._keys = torch.zeros(kept, device=device, dtype=target.dtype)
        self._values = torch.zeros_like(self._keys)
        self._rotation = rotation(s, torch.arange(columns, device=device), target.dtype)
        self._columns = torch.arange(columns, device=device)
        self._ends = torch.tensor(list(turns.ends), device=device)
        self._opening = torch.tensor(list(turns.opening), dtype=torch.int64, device=device)
        self._tokens = torch.zeros((rows, columns), dtype=torch.int64, device=device)
        self._row = {n: torch.zeros(rows, dtype=torch.int64, device=device) for n in ROW_NUMBERS}
        self._keys_to_come = torch.zeros((rows, MOST_KEYS), dtype=torch.int64, device=device)
        self._temperature = torch.zeros(rows, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._has_prefix = [False] * rows

    @torch.no_grad()
    def write(
        self, supply: Callable[[], Task | None], proceed: Callable[[], bool] = lambda: True
    ) -> Iterator[Written]:
        """Yield texts as they end, until no task is left or ``proceed`` says no.

        Math: the next token is argmax(logits + T · Gumbel noise) over what a row may take.
        """
        rows = len(self._tokens)
        tasks: list[Task | None] = [None] * rows
        self._row["done"].fill_(1)
        self._refill(range(rows), tasks, supply)
        while any(task is not None for task in tasks) and proceed():
            self._advance()
            done = self._row["done"].cpu()
            finished = [row for row in done.nonzero().flatten().tolist() if tasks[row] is not None]
            if finished:
                yield from self._harvest(finished, tasks)
                self._refill(finished, tasks, supply)

    def _harvest(self, rows: Sequence[int], tasks: Sequence[Task | None]) -> list[Written]:
        chosen = torch.tensor(rows, device=self.target.device)
        tokens = self._tokens[chosen].cpu()
        lengths, answers, ended = (
            self._row[name][chosen].tolist() for name in ("place", "answer", "ended")
        )
        return [
            Written(task, tokens[i, : lengths[i] + 1].clone(), answers[i], bool(ended[i]))
            for i, task in enumerate(tasks[row] for row in rows)
            if task is not None
        ]

    def _refill(
        self,
        rows: Sequence[int],
        tasks: list[Task | None],
        supply: Callable[[], Task | None],
    ) -> None:
        filled, given = [], []
        for row in rows:
            tasks[row] = task = supply()
            if task is not None:
                filled.append(row)
                given.append(task)
        if not filled:
            return
        device, shared = self.target.device, len(self._prefix)
        tokens = torch.zeros((len(filled), self.columns), dtype=torch.int64)
        starts = []
        for i, (row, task) in enumerate(zip(filled, given, strict=True)):
            tokens[i, : len(task.tokens)] = torch.tensor(task.tokens)
            is_shared = 0 < shared < len(task.tokens) and task.tokens[:shared] == self._prefix
            starts.append(shared if is_shared and self._has_prefix[row] else 0)
            self._has_prefix[row] = is_shared
        where = torch.tensor(filled, device=device)
        self._tokens.index_copy_(0, where, tokens.to(device))
        values = {
            "place": starts,
            "given": [len(task.tokens) for task in given],
            "answer": [task.answer for task in given],
            "is_json": [int(task.is_json) for task in given],
            "json": [self._tables.start(bool(task.keys)) if self._tables else 0 for task in given],
            "forced": [task.opening for task in given],
            "keys": [len(task.keys) for task in given],
        }
        for name, row_values in self._row.items():
            new = torch.tensor(values.get(name, [0] * len(filled)), device=device)
            row_values.index_copy_(0, where, new)
        keys = [[*task.keys, *[0] * (MOST_KEYS - len(task.keys))] for task in given]
        self._keys_to_come.index_copy_(0, where, torch.tensor(keys, device=device))
        temperatures = torch.tensor([task.temperature for task in given], device=device)
        self._temperature.index_copy_(0, where, temperatures)

    def _advance(self) -> None:
        if self.target.device.type != "cuda":
            for _ in range(STRIDE):
                self._step()
            return
        if self._graph is None:
            self._graph = self._captured()
        for _ in range(STRIDE):
            self._graph.replay()

    def _captured(self) -> torch.cuda.CUDAGraph:
        """Capture one step; the rows stand afterwards where they stood."""
        kept = [self._tokens, self._temperature, *self._row.values()]
        saved = [tensor.clone() for tensor in kept]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        for tensor, value in zip(kept, saved, strict=True):
            tensor.copy_(value)
        return graph

    def _step(self) -> None:
        self._settle(self._drawn(functional.linear(self._hidden(), self.target.head).float()))

    def _hidden(self) -> Tensor:
        """Run the token in every row's place; a row that is done repeats its last one."""
        target, place = self.target, self._row["place"]
        s, rows = target.shape, len(place)
        turns = (self._rotation[0][place][:, None, None], self._rotation[1][place][:, None, None])
        seen = (self._columns <= place[:, None])[:, None, None]
        group = s.heads // s.kv_heads
        seen = seen.expand(rows, s.kv_heads, group, self.columns)
        where = place[:, None, None, None].expand(rows, s.kv_heads, 1, s.head_dim)
        x = target.embedding[self._tokens.gather(1, place[:, None])]
        for layer in range(s.layers):
            q, k, v = target.projections(layer, x, turns)
            keys, values = self._keys[layer], self._values[layer]
            keys.scatter_(2, where, k)
            values.scatter_(2, where, v)
            # The group's query heads stand as that many queries of one key head.
            grouped = q.reshape(rows, s.kv_heads, group, s.head_dim)
            attended = functional.scaled_dot_product_attention(grouped, keys, values, seen)
            x = target.after_attention(layer, x, attended.reshape(rows, s.heads, 1, s.head_dim))
        return target.normed(x, "model.norm.weight")[:, 0]

    def _drawn(self, logits: Tensor) -> Tensor:
        row = self._row
        user = torch.full_like(self._temperature, self._turns.user_temperature)
        temperature = torch.where(row["answer"] == 0, user, self._temperature)
        noise = torch.empty_like(logits).exponential_().clamp_min_(1e-20).log_()
        scores = logits.sub_(noise.mul_(temperature[:, None]))
        if self._tables is not None:
            following = row["place"] + 1
            has_begun = (following > row["answer"]) | (row["forced"] > 0)
            is_held = (row["is_json"] > 0) & (row["answer"] > 0) & has_begun
            masks = self._tables.masks(row["json"], row["forced"], is_held)
            scores.masked_fill_(~masks, -torch.inf)
        return scores.argmax(-1)

    def _settle(self, drawn: Tensor) -> None:
        """Write the next token of every row and move on."""
        row, last = self._row, self.columns - 1
        following = (row["place"] + 1).clamp(max=last)
        moves = row["done"] == 0
        present = self._tokens.gather(1, following[:, None])[:, 0]
        token = torch.where(moves & (following >= row["given"]), drawn, present)
        self._tokens.scatter_(1, following[:, None], token[:, None])
        self._follow_json(moves & (row["answer"] > 0) & (following >= row["answer"]), token)
        is_new = moves & (following >= row["given"])
        made_up = is_new & (row["answer"] == 0)
        opens = made_up & (token == self._turns.user_end)
        self._open_answers(opens, following)
        ended = is_new & ~made_up & (token[:, None] == self._ends).any(1)
        stuck = made_up & ~opens & (following >= self._turns.user_tokens)
        is_long = (row["is_json"] > 0) & (following >= row["answer"] + self._turns.json_tokens)
        row["ended"] |= ended.long()
        row["done"] |= (ended | stuck | (moves & (is_long | (following >= last)))).long()
        row["place"].copy_(torch.where(moves, following, row["place"]))

    def _open_answers(self, opens: Tensor, following: Tensor) -> None:
        """Put an answer's opening behind the user turns that have just ended."""
        row, length = self._row, len(self._opening)
        where = following[:, None] + 1 + self._columns[:length]
        where = where.clamp(max=self.columns - 1)
        opening = torch.where(opens[:, None], self._opening, self._tokens.gather(1, where))
        self._tokens.scatter_(1, where, opening)
        answer = following + 1 + length
        row["given"].copy_(torch.where(opens, answer, row["given"]))
        row["answer"].copy_(torch.where(opens, answer, row["answer"]))

    def _follow_json(self, follows: Tensor, token: Tensor) -> None:
        """Move the JSON state of rows behind a token; where a key begins, its text is forced."""
        if self._tables is None:
            return
        row = self._row
        place = row["next"].clamp(max=MOST_KEYS - 1)[:, None]
        key = self._keys_to_come.gather(1, place)[:, 0]
        is_last = row["next"] + 1 >= row["keys"]
        json, forced, begins = self._tables.moved(row["json"], row["forced"], key, is_last, token)
        for name, value in (("json", json), ("forced", forced), ("next", row["next"] + begins)):
            row[name].copy_(torch.where(follows, value, row[name]))
