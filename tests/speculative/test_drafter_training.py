"""What the training tool rests on: text drawn by the target's law, chains as serving runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from support.statistics import assert_follows
from support.tiny_models import write_checkpoint

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from drafters.mtp import CHECKPOINT_NAMES, MtpDrafter  # noqa: E402
from drafters.target import Target  # noqa: E402
from drafters.writing import Writer  # noqa: E402

PROMPT = [40, 41, 42, 43]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("target"))


@pytest.fixture(scope="module")
def target(folder: Path) -> Target:
    torch.set_num_threads(1)
    return Target(folder, torch.device("cpu"), torch.float32)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_written_tokens_follow_the_law_of_the_target(target: Target, temperature: float) -> None:
    torch.manual_seed(3)
    rows = 4000
    writer = Writer(target, rows, len(PROMPT) + 1)
    written = writer.write([PROMPT] * rows, [temperature] * rows, ends=())
    logits = target.hidden(torch.tensor([PROMPT]))[0, -1] @ target.head.T
    law = (logits / temperature).softmax(-1).tolist()
    assert_follows(Counter(row[-1] for row in written), dict(enumerate(law)))


def test_greedy_writing_takes_the_largest_logit_and_stops_after_an_end(target: Target) -> None:
    writer = Writer(target, 2, 12)
    (row, shorter) = writer.write([PROMPT, PROMPT[:2]], [0.0, 0.0], ends=())
    for length in range(len(PROMPT), 12):
        logits = target.hidden(torch.tensor([row[:length]]))[0, -1] @ target.head.T
        assert row[length] == int(logits.argmax())
    assert shorter[:2] == PROMPT[:2]
    (ended, _) = writer.write([PROMPT, PROMPT], [0.0, 0.0], ends=(row[5],))
    assert ended == row[: row.index(row[5], len(PROMPT)) + 1]


def test_a_later_step_sees_first_steps_before_it_and_its_own_guesses_only(target: Target) -> None:
    torch.manual_seed(0)
    drafter = MtpDrafter(target.shape)
    drafter.start_from(target)
    hidden = torch.randn(1, 9, target.shape.hidden)
    followers = torch.randn(1, 9, 3, target.shape.hidden)
    whole = drafter(hidden, followers, 3)
    for length in (1, 4, 8):
        shorter = drafter(hidden[:, :length], followers[:, :length], 3)
        for ours, theirs in zip(shorter, whole, strict=True):
            torch.testing.assert_close(ours, theirs[:, :length], atol=1e-4, rtol=1e-4)
    changed = followers.clone()
    changed[:, 3, 1:] += 1.0
    again = drafter(hidden, changed, 3)
    torch.testing.assert_close(again[0], whole[0])
    others = [t for t in range(9) if t != 3]
    torch.testing.assert_close(again[1][:, others], whole[1][:, others])
    assert not torch.allclose(again[1][:, 3], whole[1][:, 3])


def test_a_run_writes_a_folder_that_says_how_it_was_made(folder: Path, tmp_path: Path) -> None:
    command = [
        sys.executable, str(TOOLS / "train_drafters.py"), "--model", str(folder),
        "--out", str(tmp_path), "--minutes", "0.01", "--columns", "400",
        "--writing-rows", "8", "--batch-rows", "2",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["optimizer_steps"] > 0
    assert 0.0 <= report["held_out_mean_accepted"] <= report["recipe"]["steps"]
    assert json.loads((tmp_path / "config.json").read_text())["drafter"] == "mtp"
    with safe_open(str(tmp_path / "model.safetensors"), "pt") as tensors:
        assert set(CHECKPOINT_NAMES.values()) <= set(tensors.keys())
