"""A tiny target, a random drafter that takes notes, and the drafter's formulas beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
from safetensors.torch import load_file

from ninfer.contract import EngineOptions, SpeculativeBackend
from ninfer.runtime.loading import load_drafter
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from ninfer.runtime.program import TorchProgram
from support.block_oracle import BlockOracle
from support.drafters import RecordingDrafter
from support.mtp_oracle import MtpOracle
from support.program_runs import commit_all, tiny_model
from support.tiny_drafters import block_config, mtp_config, random_weights, write_drafter


class Oracle(Protocol):
    """Formulas over one drafter's weights."""

    config: dict[str, Any]
    weights: dict[str, torch.Tensor]


class DraftCase:
    """What every kind of drafter is tested with."""

    backend: SpeculativeBackend
    oracle: Oracle
    drafts = 4
    context = 256
    seed: ClassVar = 5

    def __init__(self, folder: Path, config: dict[str, Any], oracle: type[Any]) -> None:
        self.model = tiny_model(folder / "target")
        self.domain = self.model.facts.token_domain
        weights = random_weights(config, seed=self.seed, vocab_rows=320)
        place = write_drafter(folder / "drafter", config, weights)
        self.drafter = load_drafter(self.model, self.backend, place)
        target = load_file(folder / "target" / "model.safetensors")
        self.oracle = oracle(
            config, weights, target["model.embed_tokens.weight"], target["lm_head.weight"]
        )

    def expected(self, text: list[int], count: int) -> list[int]:
        """Return the greedy drafts after a text whose last token is the anchor."""
        raise NotImplementedError

    def program(self, **options: int) -> tuple[TorchProgram, RecordingDrafter]:
        """Return a program over the drafter, and the drafter's notes."""
        noted = RecordingDrafter(self.drafter)
        chosen = {"max_concurrency": 8, "max_context": self.context, "prefill_chunk": 32} | options
        engine = EngineOptions(speculative=self.backend, draft_tokens=self.drafts, **chosen)  # type: ignore[arg-type]
        return TorchProgram(self.model, engine, noted), noted  # type: ignore[arg-type]

    def require_notes(
        self,
        noted: RecordingDrafter,
        text: list[int],
        least: int,
        first: int = 0,
        context: int = context,
    ) -> None:
        """Check every proposal that was made along a text, from frontier ``first`` on."""
        seen = [n for n in noted.notes if n[0] >= first and text[n[0] : n[0] + 1] == [n[1]]]
        assert len(seen) >= least
        for frontier, _, drafts in seen:
            count = min(self.drafts, context - frontier - 1)
            assert drafts == self.expected(text[: frontier + 1], count)[: len(drafts)], frontier

    def row_input(self, text: list[int]) -> RowInput:
        """Return a text as the first row of a pool of eight pages."""
        return RowInput(text, 0, SlotMap(range(8)))


class MtpCase(DraftCase):
    """A drafter that chains on its own state."""

    backend = SpeculativeBackend.MTP
    oracle: MtpOracle
    drafts = 5
    seed = 3

    def __init__(self, folder: Path, kind: str) -> None:
        super().__init__(folder, mtp_config(kind), MtpOracle)

    def expected(self, text: list[int], count: int) -> list[int]:
        """Implements: DraftCase.expected."""
        return self.oracle.drafts(text, self.hidden(text[:-1]), count, range(self.domain))

    def hidden(self, text: list[int]) -> torch.Tensor:
        """Return the target's final hidden states of a text."""
        pool = self.model.decoder.new_pool(8)
        return self.model.decoder.forward(forward_batch([self.row_input(text)], pool), pool)


class BlockCase(DraftCase):
    """A drafter that fills a block of masks."""

    oracle: BlockOracle

    def __init__(self, folder: Path, kind: str) -> None:
        self.backend = SpeculativeBackend(kind)
        super().__init__(folder, block_config(kind), BlockOracle)

    def expected(self, text: list[int], count: int) -> list[int]:
        """Implements: DraftCase.expected; ``count`` is the block, on which every draft depends."""
        streams = self.streams(text[:-1])
        logits, hidden = self.oracle.logits(streams, text[-1], count, self.domain)
        if self.backend is SpeculativeBackend.DFLASH:
            return logits.argmax(-1).tolist()
        return [choice.token for choice in self.oracle.walk(logits, hidden, text[-1])]

    def streams(self, text: list[int]) -> torch.Tensor:
        """Return what the drafter reads of a text."""
        pool = self.model.decoder.new_pool(8)
        batch = forward_batch([self.row_input(text)], pool)
        return self.model.decoder.states(batch, pool, self.oracle.config["target_layers"]).features


def run(owner: TorchProgram, row: int, rounds: int) -> list[int]:
    """Return what a row is given in some rounds."""
    tokens: list[int] = []
    for _ in range(rounds):
        tokens += commit_all(owner, owner.decode([row], [100], None))[0]
    return tokens
