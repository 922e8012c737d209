"""The MTP drafter proposes what its formulas say, however its entries came to be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ninfer.contract import (
    CommitDecision,
    DrafterError,
    EngineOptions,
    ResumeRoute,
    SequenceRequest,
    SpeculativeBackend,
)
from ninfer.runtime.loading import load_drafter
from ninfer.runtime.loading.drafter import SHIPPED_PACKAGE
from ninfer.runtime.loading.embedded import embedded_model_path
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from ninfer.runtime.program import TorchProgram
from support.drafters import RecordingDrafter
from support.mtp_oracle import MtpOracle
from support.program_runs import GREEDY, commit_all, open_row, prompt, start, tiny_model
from support.tiny_drafters import (
    MTP_KINDS,
    mtp_config,
    quantised,
    random_weights,
    write_drafter,
)

MTP = SpeculativeBackend.MTP


class Case:
    """A target, a random drafter that takes notes, and the formulas beside them."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.model = tiny_model(folder / "target")
        config = mtp_config(kind)
        weights = random_weights(config, seed=3, vocab_rows=320)
        place = write_drafter(folder / "drafter", config, weights)
        self.drafter = load_drafter(self.model, MTP, place)
        target = load_file(folder / "target" / "model.safetensors")
        self.oracle = MtpOracle(
            config, weights, target["model.embed_tokens.weight"], target["lm_head.weight"]
        )

    def program(self, drafts: int = 5, **options: int) -> tuple[TorchProgram, RecordingDrafter]:
        noted = RecordingDrafter(self.drafter)
        chosen = {"max_concurrency": 8, "max_context": 256, "prefill_chunk": 32} | options
        engine = EngineOptions(speculative=MTP, draft_tokens=drafts, **chosen)  # type: ignore[arg-type]
        return TorchProgram(self.model, engine, noted), noted  # type: ignore[arg-type]

    def expected(self, text: list[int], count: int) -> list[int]:
        """Return the drafts after a text whose last token is the anchor."""
        domain = self.model.facts.token_domain
        return self.oracle.drafts(text, self.hidden(text[:-1]), count, range(domain))

    def hidden(self, text: list[int]) -> torch.Tensor:
        """Return the target's final hidden states of a text."""
        pool = self.model.decoder.new_pool(8)
        row = RowInput(text, 0, SlotMap(range(8)))
        return self.model.decoder.forward(forward_batch([row], pool), pool)

    def require_notes(
        self, noted: RecordingDrafter, ledger: list[int], least: int, first: int = 0
    ) -> None:
        """Check every proposal that was made along a text, from frontier ``first`` on."""
        seen = [
            note
            for note in noted.notes
            if note[0] >= first and ledger[note[0] : note[0] + 1] == [note[1]]
        ]
        assert len(seen) >= least
        for frontier, _, drafts in seen:
            assert drafts == self.expected(ledger[: frontier + 1], len(drafts)), frontier


@pytest.fixture(scope="module", params=sorted(MTP_KINDS))
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
    answer = start(owner, row) + run(owner, row, 8)
    case.require_notes(noted, [*prompt(70, 1), *answer], least=9)


def test_rows_share_a_pass_and_keep_their_own_drafts(case: Case) -> None:
    owner, noted = case.program(15)
    lengths = (5, 66, 31)
    texts = [list(prompt(n, 20 + n)) for n in lengths]
    rows = [open_row(owner, text) for text in texts]
    for row, text in zip(rows, texts, strict=True):
        text += start(owner, row)
    for remaining in ([3, 100, 9], [100, 100, 100], [100, 2, 100]):
        batch = owner.decode(rows, remaining, None)
        for text, added in zip(texts, commit_all(owner, batch), strict=True):
            text += added
    for text, length in zip(texts, lengths, strict=True):
        case.require_notes(noted, text, least=3, first=length)


@pytest.mark.parametrize("route", [ResumeRoute.SNAPSHOT, ResumeRoute.REPLAY])
def test_a_pause_changes_no_draft(case: Case, route: ResumeRoute) -> None:
    owner, noted = case.program()
    row = open_row(owner, prompt(70, 2))
    answer = start(owner, row) + run(owner, row, 3)
    row = owner.resume(owner.pause(row, route))
    while route is ResumeRoute.REPLAY and not owner.replay(row).complete:
        pass
    answer += run(owner, row, 3)
    case.require_notes(noted, [*prompt(70, 2), *answer], least=7)


def test_forced_tokens_and_reused_prefixes_change_no_draft(case: Case) -> None:
    owner, noted = case.program()
    row = open_row(owner, prompt(40, 3), reuse=True)
    answer = start(owner, row) + run(owner, row, 1)
    owner.commit(owner.append_control(row, [7, 8, 9]), [CommitDecision(3)])
    answer += [7, 8, 9, *run(owner, row, 2)]
    case.require_notes(noted, [*prompt(40, 3), *answer], least=4)
    owner.release(row)
    for length, extra in ((40, []), (43, []), (38, [1, 2, 3])):
        text = [*prompt(40, 3), *answer][:length] + extra
        opened = owner.open(SequenceRequest(tuple(text), GREEDY))
        assert opened.reused_tokens >= 37
        noted.notes.clear()
        found = start(owner, opened.sequence) + run(owner, opened.sequence, 2)
        case.require_notes(noted, text + found, least=3)
        owner.release(opened.sequence)


def test_eight_bit_weights_are_the_rounded_weights(case: Case, tmp_path: Path) -> None:
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
    case: Case, tmp_path: Path, change: dict[str, object], place: str
) -> None:
    folder = write_drafter(tmp_path / "d", case.oracle.config | change, case.oracle.weights)
    with pytest.raises(DrafterError) as caught:
        load_drafter(case.model, MTP, folder)
    assert str(folder) in str(caught.value)
    assert place in str(caught.value)


def test_a_model_without_drafters_says_so(case: Case) -> None:
    for backend in (MTP, SpeculativeBackend.DFLASH):
        expected = f"speculative: no {backend.value} drafter"
        with pytest.raises(DrafterError, match=expected) as caught:
            load_drafter(case.model, backend)
        assert str(case.model.path) in str(caught.value)
        assert ("mtp.*" in str(caught.value)) == (backend is MTP)


def test_a_missing_tensor_is_named(case: Case, tmp_path: Path) -> None:
    weights = dict(case.oracle.weights)
    del weights["mtp.fc.weight"]
    with pytest.raises(DrafterError, match=r"mtp\.fc\.weight"):
        load_drafter(case.model, MTP, write_drafter(tmp_path / "d", case.oracle.config, weights))


def test_a_shortlist_bounds_what_is_proposed(case: Case, tmp_path: Path) -> None:
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
    case: Case, tmp_path: Path, ids: list[int]
) -> None:
    weights = case.oracle.weights | {"shortlist": torch.tensor(ids, dtype=torch.int32)}
    with pytest.raises(DrafterError, match="shortlist"):
        load_drafter(case.model, MTP, write_drafter(tmp_path, case.oracle.config, weights))


def test_the_embedded_model_takes_the_shipped_drafter(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
