"""MTP drafters in 8 bits, with shortlists, as shipped; folders that do not fit are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ninfer.contract import (
    DrafterError,
    EngineOptions,
    SpeculativeBackend,
)
from ninfer.runtime.loading import load_drafter
from ninfer.runtime.loading.drafter import SHIPPED_PACKAGE
from ninfer.runtime.loading.embedded import embedded_model_path
from ninfer.runtime.program import TorchProgram
from support.draft_cases import MtpCase, run
from support.drafters import RecordingDrafter
from support.program_runs import open_row, prompt, start
from support.tiny_drafters import (
    MTP_KINDS,
    quantised,
    write_drafter,
)

MTP = SpeculativeBackend.MTP


@pytest.fixture(scope="module", params=sorted(MTP_KINDS))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MtpCase:
    return MtpCase(tmp_path_factory.mktemp("case"), request.param)


def test_eight_bit_weights_are_the_rounded_weights(case: MtpCase, tmp_path: Path) -> None:
    config = case.oracle.config
    stored = quantised(case.oracle.weights)
    restored = {
        name: weight.float() * stored[name + ".scale"][:, None]
        if weight.dtype == torch.int8
        else weight
        for name, weight in stored.items()
        if not name.endswith(".scale")
    }
    drafts = []
    for name, weights in (("int8", stored), ("float", restored)):
        drafter = load_drafter(case.model, MTP, write_drafter(tmp_path / name, config, weights))
        noted = RecordingDrafter(drafter)
        options = EngineOptions(speculative=MTP, draft_tokens=5)
        owner = TorchProgram(case.model, options, noted)  # type: ignore[arg-type]
        row = open_row(owner, prompt(20, 4))
        start(owner, row)
        run(owner, row, 3)
        drafts.append(noted.notes)
    assert drafts[0] == drafts[1]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"hidden": 32}, "hidden: 32, the target has 64"),
        ({"drafter": "guess"}, "drafter: 'guess' is not one of"),
        ({"drafter": "dflash"} | MTP_KINDS["plain"] | {"qk_norm": True}, "layers: is missing"),
        ({"heads": 0}, "heads: 0 is not positive"),
        ({"kv_heads": 3}, "kv_heads: 3 does not divide 4 heads"),
        ({"rotary_dim": 7}, "rotary_dim: 7"),
        ({"norm_offset": 2}, "norm_offset: 2 is not served"),
        ({"qk_norm": None}, "qk_norm: is missing"),
        ({"ffn": 49}, "mlp.gate_proj.weight: shape"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused_by_name(
    case: MtpCase, tmp_path: Path, change: dict[str, object], place: str
) -> None:
    folder = write_drafter(tmp_path / "d", case.oracle.config | change, case.oracle.weights)
    with pytest.raises(DrafterError) as caught:
        load_drafter(case.model, MTP, folder)
    assert str(folder) in str(caught.value)
    assert place in str(caught.value)


def test_a_model_without_drafters_says_so(case: MtpCase) -> None:
    for backend in (MTP, SpeculativeBackend.DFLASH):
        expected = f"speculative: no {backend.value} drafter"
        with pytest.raises(DrafterError, match=expected) as caught:
            load_drafter(case.model, backend)
        assert str(case.model.path) in str(caught.value)
        assert ("mtp.*" in str(caught.value)) == (backend is MTP)


def test_a_missing_tensor_is_named(case: MtpCase, tmp_path: Path) -> None:
    weights = dict(case.oracle.weights)
    del weights["mtp.fc.weight"]
    with pytest.raises(DrafterError, match=r"mtp\.fc\.weight"):
        load_drafter(case.model, MTP, write_drafter(tmp_path / "d", case.oracle.config, weights))


def test_a_shortlist_bounds_what_is_proposed(case: MtpCase, tmp_path: Path) -> None:
    ids = list(range(1, 260, 9))
    weights = case.oracle.weights | {"shortlist": torch.tensor(ids, dtype=torch.int32)}
    drafter = load_drafter(case.model, MTP, write_drafter(tmp_path, case.oracle.config, weights))
    noted = RecordingDrafter(drafter)
    owner = TorchProgram(case.model, EngineOptions(speculative=MTP, draft_tokens=1), noted)  # type: ignore[arg-type]
    row = open_row(owner, prompt(30, 5))
    text = [*prompt(30, 5), *start(owner, row)]
    text += run(owner, row, 4)
    for frontier, _, drafts in noted.notes[:4]:
        states = case.hidden(text[:frontier])
        assert drafts == case.oracle.drafts(text[: frontier + 1], states, 1, ids)


@pytest.mark.parametrize("ids", [[], [3, 2], [5, 5], [-1, 4], [4, 260]])
def test_a_shortlist_of_no_ascending_ids_is_refused(
    case: MtpCase, tmp_path: Path, ids: list[int]
) -> None:
    weights = case.oracle.weights | {"shortlist": torch.tensor(ids, dtype=torch.int32)}
    with pytest.raises(DrafterError, match="shortlist"):
        load_drafter(case.model, MTP, write_drafter(tmp_path, case.oracle.config, weights))


def test_the_embedded_model_takes_the_shipped_drafter(
    case: MtpCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = replace(case.model, path=embedded_model_path())
    package = tmp_path / SHIPPED_PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("")
    write_drafter(package / "mtp", case.oracle.config, case.oracle.weights)
    monkeypatch.syspath_prepend(tmp_path)
    assert load_drafter(embedded, MTP).backend is MTP
    with pytest.raises(DrafterError, match=f"{SHIPPED_PACKAGE} has no folder dflash"):
        load_drafter(embedded, SpeculativeBackend.DFLASH)
