"""The block drafters propose what their formulas say, and DFlash2 says what it drew from."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ninfer.contract import (
    CommitDecision,
    EngineOptions,
    ModelError,
    ResumeRoute,
    SamplingParameters,
    SequenceRequest,
    SpeculativeBackend,
)
from ninfer.runtime.loading import load_drafter
from ninfer.runtime.models.drafters import ContextRow, ProposalRow
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from ninfer.runtime.program import TorchProgram
from support.block_oracle import BlockOracle
from support.drafters import RecordingDrafter
from support.program_runs import GREEDY, commit_all, open_row, prompt, start, tiny_model
from support.statistics import assert_follows
from support.tiny_drafters import block_config, random_weights, write_drafter

DRAFTS = 4


class Case:
    """A target, a random block drafter, and the formulas beside them."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.model = tiny_model(folder / "target")
        self.backend = SpeculativeBackend(kind)
        config = block_config(kind)
        weights = random_weights(config, seed=5, vocab_rows=320)
        place = write_drafter(folder / "drafter", config, weights)
        self.drafter = load_drafter(self.model, self.backend, place)
        target = load_file(folder / "target" / "model.safetensors")
        self.oracle = BlockOracle(
            config, weights, target["model.embed_tokens.weight"], target["lm_head.weight"]
        )
        self.domain = self.model.facts.token_domain

    def program(
        self, drafts: int = DRAFTS, **options: int
    ) -> tuple[TorchProgram, RecordingDrafter]:
        noted = RecordingDrafter(self.drafter)
        chosen = {"max_concurrency": 8, "max_context": 256, "prefill_chunk": 32} | options
        engine = EngineOptions(speculative=self.backend, draft_tokens=drafts, **chosen)  # type: ignore[arg-type]
        return TorchProgram(self.model, engine, noted), noted  # type: ignore[arg-type]

    def streams(self, text: list[int]) -> torch.Tensor:
        pool = self.model.decoder.new_pool(8)
        batch = forward_batch([RowInput(text, 0, SlotMap(range(8)))], pool)
        return self.model.decoder.states(batch, pool, self.oracle.config["target_layers"]).features

    def expected(self, text: list[int], block: int) -> list[int]:
        """Return the greedy drafts after a text whose last token is the anchor."""
        streams = self.streams(text[:-1])
        logits, hidden = self.oracle.logits(streams, text[-1], block, self.domain)
        if self.backend is SpeculativeBackend.DFLASH:
            return logits.argmax(-1).tolist()
        return [choice.token for choice in self.oracle.walk(logits, hidden, text[-1])]

    def require_notes(
        self, noted: RecordingDrafter, text: list[int], least: int, first: int = 0
    ) -> None:
        """Check every proposal that was made along a text, from frontier ``first`` on."""
        seen = [n for n in noted.notes if n[0] >= first and text[n[0] : n[0] + 1] == [n[1]]]
        assert len(seen) >= least
        for frontier, _, drafts in seen:
            block = min(DRAFTS, 256 - frontier - 1)
            assert drafts == self.expected(text[: frontier + 1], block)[: len(drafts)]


@pytest.fixture(scope="module", params=["dflash", "dflash2"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("case"), request.param)


def run(owner: TorchProgram, row: int, rounds: int) -> list[int]:
    tokens: list[int] = []
    for _ in range(rounds):
        tokens += commit_all(owner, owner.decode([row], [100], None))[0]
    return tokens


def test_every_round_drafts_what_the_formulas_say(case: Case) -> None:
    owner, noted = case.program()
    row = open_row(owner, prompt(70, 1))
    answer = start(owner, row) + run(owner, row, 5)
    case.require_notes(noted, [*prompt(70, 1), *answer], least=5)


def test_rows_share_a_pass_and_keep_their_own_drafts(case: Case) -> None:
    owner, noted = case.program()
    lengths = (5, 66, 31)
    texts = [list(prompt(n, 20 + n)) for n in lengths]
    rows = [open_row(owner, text) for text in texts]
    for row, text in zip(rows, texts, strict=True):
        text += start(owner, row)
    for remaining in ([3, 100, 9], [100, 1, 100]):
        batch = owner.decode(rows, remaining, None)
        for text, added in zip(texts, commit_all(owner, batch), strict=True):
            text += added
    for text, length in zip(texts, lengths, strict=True):
        case.require_notes(noted, text, least=1, first=length)


@pytest.mark.parametrize("route", [ResumeRoute.SNAPSHOT, ResumeRoute.REPLAY])
def test_a_pause_changes_no_draft(case: Case, route: ResumeRoute) -> None:
    owner, noted = case.program()
    row = open_row(owner, prompt(70, 2))
    answer = start(owner, row) + run(owner, row, 2)
    row = owner.resume(owner.pause(row, route))
    while route is ResumeRoute.REPLAY and not owner.replay(row).complete:
        pass
    answer += run(owner, row, 2)
    case.require_notes(noted, [*prompt(70, 2), *answer], least=4)


def test_forced_tokens_and_reused_prefixes_change_no_draft(case: Case) -> None:
    owner, noted = case.program()
    row = open_row(owner, prompt(40, 3), reuse=True)
    answer = start(owner, row)
    owner.commit(owner.append_control(row, [7, 8, 9]), [CommitDecision(3)])
    answer += [7, 8, 9, *run(owner, row, 2)]
    case.require_notes(noted, [*prompt(40, 3), *answer], least=2)
    owner.release(row)
    for length, extra in ((40, []), (38, [1, 2, 3])):
        text = [*prompt(40, 3), *answer][:length] + extra
        opened = owner.open(SequenceRequest(tuple(text), GREEDY))
        assert opened.reused_tokens >= 38
        noted.notes.clear()
        found = start(owner, opened.sequence) + run(owner, opened.sequence, 1)
        case.require_notes(noted, text + found, least=1)
        owner.release(opened.sequence)


def test_the_end_of_the_context_shortens_the_block(case: Case) -> None:
    owner, noted = case.program(max_context=64)
    row = open_row(owner, prompt(58, 4))
    tokens = start(owner, row)
    while len(tokens) < 6:
        tokens += commit_all(owner, owner.decode([row], [6 - len(tokens)], None))[0]
    text = [*prompt(58, 4), *tokens]
    assert noted.notes
    for frontier, _, drafts in noted.notes:
        block = min(DRAFTS, 64 - frontier - 1)
        assert drafts == case.expected(text[: frontier + 1], block)[: len(drafts)]


def test_candidates_and_their_law_are_what_the_drafts_were_drawn_from(
    tmp_path: Path,
) -> None:
    case = Case(tmp_path, "dflash2")
    text = list(prompt(20, 6))
    streams = case.streams(text[:-1])
    pool = case.drafter.new_pool(4)
    logits, hidden = case.oracle.logits(streams, text[-1], 3, case.domain)
    sampling = SamplingParameters(temperature=1.3, seed=0)
    firsts: Counter[object] = Counter()
    seen: set[tuple[int, ...]] = set()
    for seed in range(500):
        context = ContextRow(0, streams, text[1:], SlotMap([0, 1]))
        row = ProposalRow(context, text[-1], 3, 3, replace(sampling, seed=seed))
        found = case.drafter.propose([row], pool)
        assert found.distribution is not None
        tokens = found.tokens[0].tolist()
        firsts[tokens[0]] += 1
        if len(seen) >= 12 or tuple(tokens) in seen:
            continue
        seen.add(tuple(tokens))
        choices = case.oracle.walk(logits, hidden, text[-1], tokens)
        for place, choice in enumerate(choices):
            ids = found.distribution.ids[0, place].tolist()
            law = choice.law(1.3)
            assert set(ids) == set(choice.ids)
            for token, q in zip(ids, found.distribution.q[0, place].tolist(), strict=True):
                assert q == pytest.approx(law[token], abs=1e-4)
    assert_follows(firsts, dict(case.oracle.walk(logits, hidden, text[-1])[0].law(1.3)))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"target_layers": []}, "target_layers: [] are not ascending"),
        ({"target_layers": [0, 3]}, "target_layers: [0, 3] are not ascending layers of 3"),
        ({"target_layers": "all"}, "target_layers: is not a list"),
        ({"mask_token": 320}, "mask_token: 320 is not a row"),
        ({"conv_group": 7}, "conv_group: 7 does not divide 64"),
        ({"sliding_window": 128}, "sliding_window: is not served"),
        ({"selector_rank": 0}, "selector_rank: 0 is not positive"),
        ({"selector_top_k": 8}, "selector_top_k: 8 is not served"),
        ({"selector_rank": 9}, "selector.predecessor.weight: shape"),
        ({"norm_offset": 1}, "norm_offset: 1 is not served"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused_by_name(
    tmp_path: Path, change: dict[str, object], place: str
) -> None:
    model = tiny_model(tmp_path / "target")
    config = block_config("dflash2")
    weights = random_weights(config, seed=5, vocab_rows=320)
    folder = write_drafter(tmp_path / "d", config | change, weights)
    with pytest.raises(ModelError) as caught:
        load_drafter(model, SpeculativeBackend.DFLASH2, folder)
    assert str(folder) in str(caught.value)
    assert place in str(caught.value)
