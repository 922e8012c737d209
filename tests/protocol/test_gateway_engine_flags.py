"""The server's engine flags reach the engine, or are refused before anything is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from ninfer.contract import DrafterError, EngineOptions, ModelError, SpeculativeBackend
from ninfer.gateway.main import run_gateway


class Opening:
    """Notes what it is asked to open, and opens nothing."""

    def __init__(self, refusal: type[ModelError] = ModelError) -> None:
        self.refusal = refusal
        self.asked: list[tuple[EngineOptions, Path | None]] = []

    def __call__(self, model, options, *, drafter_path=None, **_):
        self.asked.append((options, drafter_path))
        raise self.refusal("nothing is opened here")


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--draft-tokens", "3"], "--draft-tokens: needs --spec"),
        (["--draft-model", "d"], "--draft-model: needs --spec"),
        (["--spec", "mtp", "--draft-tokens", "0"], "--draft-tokens: 0 is less than 1"),
        (["--spec", "dflash", "--draft-tokens", "16"], "--draft-tokens: 16 is not in 0..15"),
        (["--threads", "0"], "--threads: 0 is less than 1"),
        (["--state-checkpoint-bytes", "-1"], "--state-checkpoint-bytes: -1 is negative"),
    ],
)
def test_flags_that_contradict_are_refused(flags, error, capsys):
    opening = Opening()
    assert run_gateway(flags, opening) == 2
    assert error in capsys.readouterr().err
    assert not opening.asked


@pytest.mark.parametrize(
    ("flags", "backend", "drafts", "folder"),
    [
        ([], "none", 0, None),
        (["--spec", "mtp"], "mtp", 3, None),
        (["--spec", "dflash2"], "dflash2", 3, None),
        (["--spec", "mtp", "--draft-tokens", "15", "--draft-model", "d"], "mtp", 15, Path("d")),
    ],
)
def test_flags_reach_the_engine(flags, backend, drafts, folder):
    opening = Opening()
    assert run_gateway(flags, opening) == 2
    ((options, drafter_path),) = opening.asked
    assert options.speculative is SpeculativeBackend(backend)
    assert (options.draft_tokens, drafter_path) == (drafts, folder)


def test_threads_are_left_to_torch_unless_they_are_named():
    opening = Opening()
    for flags in ([], ["--threads", "3"]):
        run_gateway(flags, opening)
    assert [options.compute_threads for options, _ in opening.asked] == [None, 3]


@pytest.mark.parametrize(
    ("refusal", "flag"), [(ModelError, "--model"), (DrafterError, "--draft-model")]
)
def test_files_that_do_not_serve_are_named_by_their_flag(refusal, flag, capsys):
    assert run_gateway(["--spec", "mtp"], Opening(refusal)) == 2
    assert capsys.readouterr().err.startswith(f"error: {flag}: nothing is opened")


@pytest.mark.parametrize("kept", [0, 4096, 512 << 20])
def test_states_for_later_prompts_have_a_budget(kept):
    opening = Opening()
    run_gateway(["--state-checkpoint-bytes", str(kept)], opening)
    run_gateway([], opening)
    assert [options.state_checkpoint_bytes for options, _ in opening.asked] == [kept, 512 << 20]
