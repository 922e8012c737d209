"""One program, its prompts answered round by round, and what every round took."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from gpu_rounds_model import Shape, random_drafter
from gpu_rounds_probes import MatcherMasks, OracleDrafter, TimedUnit

from ninfer.contract import (
    CommitDecision,
    EngineOptions,
    SamplingParameters,
    SequenceId,
    SequenceRequest,
    SpeculativeBackend,
)
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.program import RoundForm, TorchProgram
from ninfer.text import Matcher

ANSWER_TOKENS = 1536
"""Room behind a prompt: more than any segment takes."""
GREEDY = SamplingParameters(temperature=0.0)
Figures = dict[str, float]
"""One round: milliseconds by what took them, and counts."""


class Plan(NamedTuple):
    """What is run: rows, drafts a row, threads that fill masks, rounds a segment, prompt tokens."""

    rows: int
    drafts: int
    threads: int
    rounds: int
    prompt: int = 512


class Case:
    """One program and everything that is measured on it."""

    def __init__(
        self,
        model: LoadedModel,
        shape: Shape,
        backend: SpeculativeBackend,
        form: RoundForm,
        plan: Plan,
    ) -> None:
        self.plan = plan
        self.drafts = 0 if backend is SpeculativeBackend.NONE else plan.drafts
        engine = EngineOptions(
            max_concurrency=plan.rows,
            max_context=plan.prompt + ANSWER_TOKENS,
            speculative=backend,
            draft_tokens=self.drafts,
        )
        self.oracle: OracleDrafter | None = None
        if self.drafts:
            inner = random_drafter(model, shape, backend)
            self.oracle = OracleDrafter(inner, plan.rows, self.drafts, model.decoder.device)
        started = time.perf_counter()
        self.program = TorchProgram(model, engine, self.oracle, form)  # type: ignore[arg-type]
        self.start_seconds = time.perf_counter() - started
        self.on_device = model.decoder.device.type == "cuda"
        units = self.program._round._units._units  # type: ignore[attr-defined]
        size = next(size for size in units if size[0] == plan.rows)
        self.timed = TimedUnit(units[size], self.on_device)
        units[size] = self.timed

    def open(
        self, prompts: Sequence[Sequence[int]], matchers: Sequence[Matcher] | None
    ) -> tuple[list[SequenceId], list[list[int]]]:
        """Compute the prompts and their first tokens."""
        rows, answers = [], []
        for index, prompt in enumerate(prompts):
            row = self.program.open(SequenceRequest(tuple(prompt), GREEDY, False)).sequence
            masks = None if matchers is None else MatcherMasks([matchers[index]], 1)
            while (batch := self.program.prefill(row, masks).batch) is None:
                pass
            answers.append(list(batch.rows[0].tokens))
            self.program.commit(batch, [CommitDecision(1)])
            if matchers is not None:
                matchers[index].preview(answers[-1])
                matchers[index].commit()
            rows.append(row)
        return rows, answers

    def rounds(
        self,
        rows: Sequence[SequenceId],
        answers: list[list[int]],
        matchers: Sequence[Matcher] | None,
        count: int,
        known: Sequence[Sequence[int]] | None,
    ) -> list[Figures]:
        """Run rounds and return what each took; ``known`` answers become drafts."""
        masks = None if matchers is None else MatcherMasks(matchers, self.plan.threads)
        noted: list[Figures] = []
        for _ in range(count):
            if known is not None:
                self._tell(rows, [a[len(b) :] for a, b in zip(known, answers, strict=True)])
            started = time.perf_counter()
            batch = self.program.decode(rows, [1000] * len(rows), masks)
            produced = [row.tokens for row in batch.rows]
            for matcher, tokens in zip(matchers or (), produced, strict=False):
                if matcher.preview(tokens) != len(tokens) or matcher.terminated:
                    raise SystemExit("gpu_rounds: a schema ended; give it more items")
            self.program.commit(batch, [CommitDecision(len(tokens)) for tokens in produced])
            for matcher in matchers or ():
                matcher.commit()
            seconds = time.perf_counter() - started
            forward, between, finish = self.timed.spans()
            noted.append({
                "round": seconds * 1e3,
                "forward": forward,
                "exposed": between,
                "finish": finish,
                "fill": masks.seconds[-1] * 1e3 if masks else 0.0,
                "masks": masks.filled[-1] if masks else 0,
                "draft_wait": batch.draft_wait_seconds * 1e3,
                "tokens": sum(map(len, produced)) / len(rows),
            })  # fmt: skip
            for answer, tokens in zip(answers, produced, strict=True):
                answer += tokens
        return noted

    def _tell(self, rows: Sequence[SequenceId], drafts: list[list[int]]) -> None:
        if self.oracle is None:
            return
        drafts = [tokens[: self.drafts] for tokens in drafts]
        if not self.oracle.drafts_ahead:
            self.oracle.tell(drafts)
            return
        for row, tokens in zip(rows, drafts, strict=True):
            self.program._residents.get(row).draft.drafts = tuple(tokens)

    def segment(
        self, number: int, matchers_of: Callable[[], list[Matcher] | None]
    ) -> dict[str, list[Figures]]:
        """Answer one set of prompts with the drafter's own drafts, then again with right ones."""
        generator = torch.Generator().manual_seed(number)
        size = (self.plan.rows, self.plan.prompt)
        prompts = torch.randint(0, 200_000, size, generator=generator).tolist()
        found: dict[str, list[Figures]] = {}
        known: list[list[int]] | None = None
        for drafts in ("random", "right") if self.drafts else ("random",):
            matchers = matchers_of()
            if self.oracle is not None:
                self.oracle.tell(None)
            rows, answers = self.open(prompts, matchers)
            count = self.plan.rounds
            if drafts == "right" and known is not None:
                count = (min(map(len, known)) - 2) // (self.drafts + 1) - 1
            found[drafts] = self.rounds(rows, answers, matchers, count, known)
            known = answers
            for row in rows:
                self.program.release(row)
        return found
