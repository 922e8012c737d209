"""Block drafters whose layers see through windows draft what the formulas say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from ninfer.contract import EngineOptions, ResumeRoute, SpeculativeBackend
from ninfer.runtime.loading import load_drafter
from ninfer.runtime.models.drafters import ContextRow, DraftKeys, PagedProposal, ProposalRow
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import KvPool, SlotMap
from ninfer.runtime.program import TorchProgram
from support.block_law import BlockLaw
from support.drafters import RecordingDrafter
from support.program_runs import GREEDY, commit_all, open_row, prompt, restore, start, tiny_model
from support.tiny_drafters import block_config, random_weights, write_drafter

DRAFTS = 5
CONTEXT = 256
CONFIGS: dict[str, dict[str, Any]] = {
    "every layer alike": block_config("dflash", windows=[20, 20]),
    "one layer sees all": block_config("dflash", layers=3, windows=[33, 0, 7]),
    "narrower than the block": block_config("dflash", windows=[3, 0]),
    "itself only": block_config("dflash", windows=[1, 1]),
    "second, every layer": block_config("dflash2", windows=[12, 12]),
    "second, mixed": block_config("dflash2", windows=[0, 4]),
    "wider than any context": block_config("dflash2", windows=[1000, 0]),
}


class Case:
    """A target, a random windowed drafter, and the formulas beside them."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.model = tiny_model(folder / "target")
        self.backend = SpeculativeBackend(config["drafter"])
        weights = random_weights(config, seed=5, vocab_rows=320)
        place = write_drafter(folder / "drafter", config, weights)
        self.drafter = load_drafter(self.model, self.backend, place)
        target = load_file(folder / "target" / "model.safetensors")
        tables = target["model.embed_tokens.weight"], target["lm_head.weight"]
        self.law = BlockLaw(config, weights, *tables)
        self.unwindowed = BlockLaw(config | {"windows": None}, weights, *tables)

    def program(self, **options: int) -> tuple[TorchProgram, RecordingDrafter]:
        noted = RecordingDrafter(self.drafter)
        chosen = {"max_concurrency": 8, "max_context": CONTEXT, "prefill_chunk": 32} | options
        engine = EngineOptions(speculative=self.backend, draft_tokens=DRAFTS, **chosen)  # type: ignore[arg-type]
        return TorchProgram(self.model, engine, noted), noted  # type: ignore[arg-type]

    def streams(self, text: list[int]) -> torch.Tensor:
        pool = self.model.decoder.new_pool(8)
        batch = forward_batch([RowInput(text, 0, SlotMap(range(8)))], pool)
        return self.model.decoder.states(batch, pool, self.law.config["target_layers"]).features

    def expected(self, text: list[int], block: int, law: BlockLaw | None = None) -> list[int]:
        """Return the drafts after a text whose last token is the anchor."""
        domain = self.model.facts.token_domain
        chosen = self.law if law is None else law
        return chosen.drafts(self.streams(text[:-1]), text[-1], block, domain)

    def require_notes(self, noted: RecordingDrafter, text: list[int], least: int) -> None:
        """Check every proposal that was made along a text."""
        seen = [n for n in noted.notes if text[n[0] : n[0] + 1] == [n[1]]]
        assert len(seen) >= least
        for frontier, _, drafts in seen:
            block = min(DRAFTS, CONTEXT - frontier - 1)
            assert drafts == self.expected(text[: frontier + 1], block)[: len(drafts)]


@pytest.fixture(scope="module", params=sorted(CONFIGS))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("case"), CONFIGS[request.param])


def run(owner: TorchProgram, row: int, *remaining: int) -> list[int]:
    tokens: list[int] = []
    for count in remaining:
        tokens += commit_all(owner, owner.decode([row], [count], None))[0]
    return tokens


def test_rounds_draft_what_the_formulas_say(case: Case) -> None:
    owner, noted = case.program()
    row = open_row(owner, prompt(70, 1))
    answer = start(owner, row)
    # Rounds without drafts leave features behind, which the next proposal reads first.
    answer += run(owner, row, 100, 100, 1, 1, 3, 100, 1, 100)
    case.require_notes(noted, [*prompt(70, 1), *answer], least=5)


def test_rows_of_any_length_share_a_pass(case: Case) -> None:
    owner, noted = case.program()
    texts = [list(prompt(n, 20 + n)) for n in (2, 90, 31)]
    rows = [open_row(owner, text) for text in texts]
    for row, text in zip(rows, texts, strict=True):
        text += start(owner, row)
    for remaining in ([3, 100, 9], [100, 1, 100], [100, 100, 100]):
        added = commit_all(owner, owner.decode(rows, remaining, None))
        for text, tokens in zip(texts, added, strict=True):
            text += tokens
    for text in texts:
        case.require_notes(noted, text, least=2)


@pytest.mark.parametrize("route", [ResumeRoute.SNAPSHOT, ResumeRoute.REPLAY])
def test_a_pause_changes_no_draft(case: Case, route: ResumeRoute) -> None:
    owner, noted = case.program()
    row = open_row(owner, prompt(70, 2))
    answer = start(owner, row) + run(owner, row, 100, 1)
    row = restore(owner, owner.pause(row, route))
    answer += run(owner, row, 100, 100)
    case.require_notes(noted, [*prompt(70, 2), *answer], least=3)


def test_windows_decide_what_is_drafted(tmp_path: Path) -> None:
    for index, name in enumerate(("every layer alike", "narrower than the block", "second, mixed")):
        case = Case(tmp_path / str(index), CONFIGS[name])
        texts = [list(prompt(80, 50 + seed)) for seed in range(3)]
        assert any(
            case.expected(text, DRAFTS) != case.expected(text, DRAFTS, case.unwindowed)
            for text in texts
        )


def test_rows_in_tensors_draft_as_rows_in_lists_do(case: Case) -> None:
    """The same contexts, part of which is read already, by both ways into a drafter."""
    lengths, read, blocks = (9, 70, 33), (4, 70, 20), (5, 3, 5)
    texts = [list(prompt(length + 1, 60 + length)) for length in lengths]
    streams = [case.streams(text[:-1]) for text in texts]
    maps = [SlotMap((4, 1)), SlotMap((0, 3)), SlotMap((5, 2))]

    def pool() -> KvPool:
        fresh = case.drafter.new_pool(6)
        parts = zip(streams, read, texts, maps, strict=True)
        case.drafter.absorb([ContextRow(0, s[:n], t[1:], m) for s, n, t, m in parts], fresh)
        return fresh

    rows = [
        ProposalRow(ContextRow(n, s[n:], t[n + 1 :], m), t[-1], b, b, GREEDY)
        for s, n, t, m, b in zip(streams, read, texts, maps, blocks, strict=True)
    ]
    listed = case.drafter.propose(rows, pool()).tokens.tolist()
    widest = max(length - n for length, n in zip(lengths, read, strict=True))
    features = torch.zeros(3, widest, case.drafter.feature_width)
    for row, (stream, n) in enumerate(zip(streams, read, strict=True)):
        features[row, : len(stream) - n] = stream[n:]
    starts = torch.tensor(read)
    counts = torch.tensor(lengths) - starts
    following = torch.zeros(3, widest, dtype=torch.int64)
    pages = torch.tensor([m.pages for m in maps])
    wanted = torch.tensor(blocks)
    keys = DraftKeys.of(rows, torch.device("cpu"))
    batch = PagedProposal(keys, features, starts, counts, following, wanted, wanted, pages, DRAFTS)
    in_tensors = case.drafter.propose_paged(batch, pool()).tokens.tolist()
    for text, block, one, other in zip(texts, blocks, listed, in_tensors, strict=True):
        assert one[:block] == other[:block] == case.expected(text, block)
