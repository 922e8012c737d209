"""A hybrid's own MTP head drafts what transformers' does, and no draft changes an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from ninfer.contract import (
    EngineOptions,
    Lookahead,
    ResumeRoute,
    SamplingParameters,
    SequenceId,
    SpeculativeBackend,
    mask_bit,
)
from ninfer.runtime.loading import LoadedModel, load_drafter, load_model
from ninfer.runtime.models.drafters import Drafter
from ninfer.runtime.program import TorchProgram
from support.drafters import RecordingDrafter, ScriptedDrafter, erring
from support.hybrid_models import write_hybrid
from support.program_runs import GREEDY, commit_all, open_row, prefill, program, prompt, solo, start

MTP = SpeculativeBackend.MTP
PENALISED = SamplingParameters(temperature=0.0, presence_penalty=0.8, frequency_penalty=0.4)
LENGTH = 40


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    torch.set_num_threads(1)
    # The two fields by which transformers finds the head; checkpoints do not have them.
    fields: dict[str, Any] = {"num_mtp_layers": 1, "mtp_layer_types": ["full_attention"]}
    folder = write_hybrid(tmp_path_factory.mktemp("hybrid"), seed=6, **fields)
    return load_model(folder, dtype=torch.float32)


def speculating(model: LoadedModel, drafter: object, drafts: int, **options: int) -> TorchProgram:
    chosen = {"max_concurrency": 8, "max_context": 256, "prefill_chunk": 32} | options
    engine = EngineOptions(speculative=MTP, draft_tokens=drafts, **chosen)  # type: ignore[arg-type]
    return TorchProgram(model, engine, drafter)  # type: ignore[arg-type]


def run(owner: TorchProgram, row: SequenceId, tokens: list[int], length: int) -> list[int]:
    """Decode with the budget an engine would give, and return the whole answer."""
    while len(tokens) < length:
        batch = owner.decode([row], [length - len(tokens)], None)
        tokens = tokens + commit_all(owner, batch)[0]
    return tokens


class MtpReference:
    """The head in transformers, over whole texts."""

    def __init__(self, model: LoadedModel) -> None:
        from transformers import Qwen3_5ForCausalLM
        from transformers.modeling_layers import MtpModel

        self._target = Qwen3_5ForCausalLM.from_pretrained(model.path, dtype=torch.float32).eval()
        self._head = MtpModel.from_pretrained(self._target).eval()
        self._token_domain = model.facts.token_domain

    @torch.no_grad()
    def drafts(self, text: Sequence[int], count: int) -> list[int]:
        """Return the drafts after a text, the last token of which the target has not read."""
        from transformers.cache_utils import MtpCache

        read = torch.tensor([text[:-1]])
        hidden = self._target.model(read).last_hidden_state
        followers, drafts = list(text[1:]), []
        while len(drafts) < count:
            out = self._head.forward_layer(
                0,
                hidden,
                torch.arange(1, len(followers) + 1)[None],
                MtpCache(),
                input_ids=torch.tensor([followers]),
            )[:, -1:]
            logits = self._target.lm_head(out)[0, -1, : self._token_domain]
            drafts.append(int(logits.argmax()))
            followers.append(drafts[-1])
            hidden = torch.cat((hidden, out), dim=1)
        return drafts


def test_every_round_drafts_what_transformers_drafts(model: LoadedModel) -> None:
    reference = MtpReference(model)
    noted = RecordingDrafter(load_drafter(model, MTP))
    owner = speculating(model, noted, 4)
    texts = [list(prompt(length, 60 + length)) for length in (70, 5, 33)]
    rows = [open_row(owner, text) for text in texts]
    for row, text in zip(rows, texts, strict=True):
        text += start(owner, row)
    for _ in range(4):
        batch = owner.decode(rows, [100] * len(rows), None)
        for text, added in zip(texts, commit_all(owner, batch), strict=True):
            text += added
    checked = 0
    for frontier, anchor, drafts in noted.notes:
        for text in texts:
            if text[frontier : frontier + 1] == [anchor]:
                checked += 1
                assert drafts == reference.drafts(text[: frontier + 1], len(drafts))
    assert checked >= 12


@pytest.mark.parametrize("drafts", [1, 5, 15])
def test_answers_with_the_own_head_are_ordinary_answers(model: LoadedModel, drafts: int) -> None:
    drafter: Drafter = load_drafter(model, MTP)
    owner = speculating(model, drafter, drafts)
    row = open_row(owner, prompt(50, 1))
    assert run(owner, row, start(owner, row), LENGTH) == solo(model, prompt(50, 1), LENGTH)


@pytest.mark.parametrize("sampling", [GREEDY, PENALISED])
@pytest.mark.parametrize(("drafts", "period"), [(1, 3), (5, 4), (5, 1000), (15, 7), (15, 1)])
def test_answers_do_not_depend_on_the_drafts(
    model: LoadedModel, drafts: int, period: int, sampling: SamplingParameters
) -> None:
    expected = solo(model, prompt(50, 1), LENGTH, sampling)
    drafter = ScriptedDrafter(erring(expected, 50, period), ahead=True)
    owner = speculating(model, drafter, drafts)
    row = open_row(owner, prompt(50, 1), sampling)
    assert run(owner, row, start(owner, row), LENGTH) == expected
    if period == 1000:
        assert drafter.proposals <= 2 + LENGTH // (drafts + 1)


@pytest.mark.parametrize("route", [ResumeRoute.SNAPSHOT, ResumeRoute.REPLAY])
def test_eight_rows_keep_different_prefixes_and_survive_pauses(
    model: LoadedModel, route: ResumeRoute
) -> None:
    lengths = (3, 60, 17, 40, 9, 31, 64, 22)
    answers = [solo(model, prompt(n, 70 + n), 24) for n in lengths]
    places = {n + i: t for n, a in zip(lengths, answers, strict=True) for i, t in enumerate(a)}
    drafter = ScriptedDrafter(lambda place, anchor: places.get(place, 1), ahead=True)
    owner = speculating(model, drafter, 5)
    rows = {index: open_row(owner, prompt(n, 70 + n)) for index, n in enumerate(lengths)}
    tokens = {index: start(owner, row) for index, row in rows.items()}
    rounds = 0
    while live := [index for index in rows if len(tokens[index]) < 24]:
        order = live[::-1] if rounds % 2 else live
        if rounds == 2:
            state = owner.pause(rows[order[0]], route)
            rows[order[0]] = owner.resume(state)
            while route is ResumeRoute.REPLAY and not owner.replay(rows[order[0]]).complete:
                pass
        if rounds == 3:
            remaining = [24 - len(tokens[index]) for index in order]
            owner.abort(owner.decode([rows[index] for index in order], remaining, None))
        remaining = [24 - len(tokens[index]) for index in order]
        batch = owner.decode([rows[index] for index in order], remaining, None)
        for index, added in zip(order, commit_all(owner, batch), strict=True):
            tokens[index] += added
        rounds += 1
    assert [tokens[index] for index in rows] == answers


class OrderedMasks:
    """Implements contract.MaskProvider: a token may follow another if their sum leaves no rest 0.

    Rows without a ledger are free.
    """

    def __init__(self, *ledgers: list[int] | None) -> None:
        self.ledgers = ledgers

    def is_constrained(self, row: int) -> bool:
        return self.ledgers[row] is not None

    def fill(
        self, drafts: Sequence[Sequence[int]], masks: memoryview
    ) -> Sequence[Lookahead | None]:
        return [self._fill_row(row, row_drafts, masks) for row, row_drafts in enumerate(drafts)]

    def uploaded(self, row: int, byte_count: int) -> None:
        raise AssertionError("nothing is uploaded on the CPU")

    def _fill_row(self, row: int, drafts: Sequence[int], masks: memoryview) -> Lookahead | None:
        ledger = self.ledgers[row]
        if ledger is None:
            return None
        before, reachable, is_reachable = ledger[-1], 0, True
        for position in range(len(drafts) + 1):
            allowed = [t for t in range(250) if (t + before) % 3] if is_reachable else [0]
            self._write(masks, row, position, allowed)
            reachable += is_reachable
            if position < len(drafts):
                is_reachable = is_reachable and drafts[position] in allowed
                before = drafts[position]
        return Lookahead(len(drafts) + 1, reachable, 0, reachable)

    def _write(self, masks: memoryview, row: int, position: int, allowed: Sequence[int]) -> None:
        assert masks.shape is not None
        words = [0] * masks.shape[2]
        for token in allowed:
            word, bit = mask_bit(token)
            words[word] |= bit
        for word, value in enumerate(words):
            masks[row, position, word] = value - (value >> 31 << 32)


def constrained_answer(model: LoadedModel, text: Sequence[int], length: int) -> list[int]:
    """Return what one row answers in ordinary rounds under the masks."""
    owner = program(model)
    ledger = list(text)
    row = open_row(owner, text)
    while len(ledger) < len(text) + length:
        masks = OrderedMasks(ledger)
        is_first = len(ledger) == len(text)
        batch = prefill(owner, row, masks) if is_first else owner.decode([row], [100], masks)
        ledger += commit_all(owner, batch)[0]
    return ledger[len(text) :]


@pytest.mark.parametrize("drafts", [1, 5, 15])
def test_constrained_and_free_rows_share_rounds(model: LoadedModel, drafts: int) -> None:
    texts = [prompt(length, 90 + length) for length in (20, 37)]
    bound = constrained_answer(model, texts[0], 30)
    free = solo(model, texts[1], 30)
    assert bound != solo(model, texts[0], 30)
    places = {20 + i: t for i, t in enumerate(bound)}
    drafter = ScriptedDrafter(
        lambda place, anchor: 0 if place % 6 == 0 else places.get(place, 5), ahead=True
    )
    owner = speculating(model, drafter, drafts)
    rows = [open_row(owner, text) for text in texts]
    ledger = list(texts[0])
    ledger += commit_all(owner, prefill(owner, rows[0], OrderedMasks(ledger)))[0]
    other = start(owner, rows[1])
    while len(ledger) < 50 or len(other) < 30:
        masks = OrderedMasks(ledger, None)
        remaining = [max(1, 50 - len(ledger)), max(1, 30 - len(other))]
        first, second = commit_all(owner, owner.decode(rows, remaining, masks))
        ledger += first
        other += second
    assert ledger[20:50] == bound
    assert other[:30] == free
