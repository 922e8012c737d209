"""Every drafter proposes what its formulas say, however its entries came to be."""

from __future__ import annotations

import pytest

from ninfer.contract import CommitDecision, ResumeRoute, SequenceRequest
from support.draft_cases import BlockCase, DraftCase, MtpCase, run
from support.program_runs import GREEDY, commit_all, open_row, prompt, start
from support.tiny_drafters import MTP_KINDS

CASES = {
    **{f"mtp {kind}": (MtpCase, kind) for kind in sorted(MTP_KINDS)},
    **{kind: (BlockCase, kind) for kind in ("dflash", "dflash2")},
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DraftCase:
    kind, name = CASES[request.param]
    return kind(tmp_path_factory.mktemp("case"), name)


def test_every_round_drafts_what_the_formulas_say(case: DraftCase) -> None:
    owner, noted = case.program()
    row = open_row(owner, prompt(70, 1))
    answer = start(owner, row) + run(owner, row, 8)
    case.require_notes(noted, [*prompt(70, 1), *answer], least=8)


def test_rows_share_a_pass_and_keep_their_own_drafts(case: DraftCase) -> None:
    owner, noted = case.program()
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
def test_a_pause_changes_no_draft(case: DraftCase, route: ResumeRoute) -> None:
    owner, noted = case.program()
    row = open_row(owner, prompt(70, 2))
    answer = start(owner, row) + run(owner, row, 3)
    row = owner.resume(owner.pause(row, route))
    while route is ResumeRoute.REPLAY and not owner.replay(row).complete:
        pass
    answer += run(owner, row, 3)
    case.require_notes(noted, [*prompt(70, 2), *answer], least=6)


def test_forced_tokens_and_reused_prefixes_change_no_draft(case: DraftCase) -> None:
    owner, noted = case.program()
    row = open_row(owner, prompt(40, 3), reuse=True)
    answer = start(owner, row) + run(owner, row, 1)
    owner.commit(owner.append_control(row, [7, 8, 9]), [CommitDecision(3)])
    answer += [7, 8, 9, *run(owner, row, 2)]
    case.require_notes(noted, [*prompt(40, 3), *answer], least=3)
    owner.release(row)
    for length, extra in ((40, []), (43, []), (38, [1, 2, 3])):
        text = [*prompt(40, 3), *answer][:length] + extra
        opened = owner.open(SequenceRequest(tuple(text), GREEDY))
        assert opened.reused_tokens >= 37
        noted.notes.clear()
        found = start(owner, opened.sequence) + run(owner, opened.sequence, 2)
        case.require_notes(noted, text + found, least=2)
        owner.release(opened.sequence)


def test_the_end_of_the_context_shortens_a_proposal(case: DraftCase) -> None:
    owner, noted = case.program(max_context=64)
    row = open_row(owner, prompt(58, 4))
    tokens = start(owner, row)
    while len(tokens) < 6:
        tokens += commit_all(owner, owner.decode([row], [6 - len(tokens)], None))[0]
    case.require_notes(noted, [*prompt(58, 4), *tokens], least=1, context=64)
