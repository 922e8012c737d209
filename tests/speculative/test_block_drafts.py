"""DFlash2 says what it drew from, and folders that do not fit are refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ninfer.contract import ModelError, SamplingParameters, SpeculativeBackend
from ninfer.runtime.loading import load_drafter
from ninfer.runtime.models.drafters import ContextRow, ProposalRow
from ninfer.runtime.models.kv_pool import SlotMap
from support.draft_cases import BlockCase
from support.program_runs import prompt, tiny_model
from support.statistics import assert_follows
from support.tiny_drafters import block_config, random_weights, write_drafter


def test_candidates_and_their_law_are_what_the_drafts_were_drawn_from(
    tmp_path: Path,
) -> None:
    case = BlockCase(tmp_path, "dflash2")
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
