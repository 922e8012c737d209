"""Train drafters for a dense target on text that the target writes itself.

    python tools/train_drafters.py write --model FOLDER --out FILE [--minutes 2] [--seed 1]
    python tools/train_drafters.py train --kind mtp dflash dflash2 --model FOLDER
                                         --dialogues FILE [FILE ...] --out FOLDER [--minutes 5]

Needs a CUDA device for anything worth shipping; on a CPU it runs, slowly, for the tests. Several
writers with seeds of their own may run side by side; kinds that are trained together share the
target's pass. ``train`` writes one folder for each kind, with config.json and model.safetensors as
ninfer.runtime reads them; report.json says how the drafter was made and what it reaches on
dialogues whose prompts it never saw.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
from drafters.block import BlockDrafter, BlockPlan, default_taps
from drafters.block_objective import BlockObjective
from drafters.corpus import Batches, Dialogues
from drafters.dictation import Dictation
from drafters.evaluation import judge
from drafters.folder import restore, save_folder, write_json
from drafters.mtp import MtpDrafter
from drafters.mtp_objective import MtpObjective
from drafters.shortlist import Shortlist
from drafters.target import Target
from drafters.training import train

HELD_OUT_PARTS = 32
"""One of so many prompts is kept for the report."""
SHORTLISTS = {"mtp": 8192, "dflash": 16384, "dflash2": 16384}
"""Tokens that each kind may propose; an MTP drafter pays for them with every draft."""


def main(given: Sequence[str] | None = None) -> int:
    """Write dialogues, or train drafters on them."""
    arguments = parse(given)
    torch.manual_seed(arguments.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    until = time.monotonic() + 60 * arguments.minutes
    target = Target(arguments.model, device, dtype)
    if arguments.command == "write":
        write(arguments, target, until)
    else:
        make(arguments, target, until)
    return 0


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="let the target write dialogues into a file")
    training = commands.add_parser("train", help="train drafters on written dialogues")
    for command in (writing, training):
        command.add_argument("--model", type=Path, required=True, help="folder of the target")
        command.add_argument("--out", type=Path, required=True, help="file or folder to write")
        command.add_argument("--minutes", type=float, default=2.0, help="wall clock, loading too")
        command.add_argument("--seed", type=int, default=1)
    writing.add_argument("--rows", type=int, default=2048, help="texts side by side")
    writing.add_argument("--columns", type=int, default=384, help="tokens of the longest text")
    writing.add_argument("--least", type=int, default=0, help="answer tokens, time or not")
    training.add_argument("--kind", choices=tuple(SHORTLISTS), nargs="+", required=True)
    training.add_argument("--dialogues", type=Path, nargs="+", required=True)
    training.add_argument("--batch-tokens", type=int, default=24576)
    training.add_argument("--learning-rate", type=float, default=8e-4)
    training.add_argument("--shortlist", type=int, help="tokens it may propose")
    training.add_argument("--steps", type=int, default=4, help="mtp: chained steps of the loss")
    training.add_argument("--block", type=int, default=7, help="dflash, dflash2: drafts of a block")
    training.add_argument("--layers", type=int, default=2, help="dflash, dflash2")
    training.add_argument("--taps", type=int, default=3, help="dflash, dflash2: streams read")
    training.add_argument("--mask-token", type=int, default=16, help="dflash, dflash2")
    training.add_argument("--conv-group", type=int, default=16, help="dflash2")
    training.add_argument("--selector-rank", type=int, default=32, help="dflash2")
    training.add_argument("--start", type=Path, help="folder of an earlier run to go on from")
    training.add_argument("--judged", type=int, default=256, help="answers of a kind in the report")
    return parser.parse_args(given)


def write(arguments: argparse.Namespace, target: Target, until: float) -> None:
    """Let the target write until the time is over."""
    dictation = Dictation(
        arguments.model, target, arguments.rows, arguments.columns, arguments.seed
    )
    dialogues = dictation.run(lambda n: time.monotonic() < until or n < arguments.least)
    dialogues.save(arguments.out)
    print(f"{len(dialogues)} dialogues, {dialogues.answer_tokens} answer tokens")
    for index in range(0, len(dialogues), max(1, len(dialogues) // 8)):
        print(repr(dictation.text(dialogues.at(index))[:160]))


def make(arguments: argparse.Namespace, target: Target, until: float) -> None:
    """Train, save, judge what was saved, report."""
    everything = Dialogues.load(arguments.dialogues)
    is_held_out = everything.held_out(HELD_OUT_PARTS)
    dialogues, held_out = everything.where(~is_held_out), everything.where(is_held_out)
    print(f"{len(dialogues)} dialogues, {len(held_out)} held out", flush=True)
    lists = {
        kind: dialogues.frequent(arguments.shortlist or SHORTLISTS[kind]) for kind in arguments.kind
    }
    taps = default_taps(target.shape.layers, arguments.taps)
    objectives = {
        kind: objective_of(kind, arguments, target, Shortlist(ids, target), taps)
        for kind, (ids, _) in lists.items()
    }
    if arguments.start is not None:
        for kind, objective in objectives.items():
            restore(arguments.start / kind, objective.drafter)
    progress = train(
        list(objectives.values()),
        target,
        taps,
        Batches(dialogues, arguments.batch_tokens, target.device),
        learning_rate=arguments.learning_rate,
        until=until,
        seed=arguments.seed,
    )
    for kind, objective in objectives.items():
        save_folder(arguments.out / kind, objective.drafter, target.shape, lists[kind][0])
    for kind, loss in zip(objectives, progress.losses, strict=True):
        restore(arguments.out / kind, objectives[kind].drafter)
        judged = judge(
            objectives[kind], target, taps, held_out, arguments.batch_tokens, arguments.judged
        )
        report = {
            "recipe": recipe_of(arguments),
            "dialogues": len(dialogues),
            "answer_tokens": dialogues.answer_tokens,
            "shortlist_coverage": round(lists[kind][1], 4),
            "optimizer_steps": progress.steps,
            "epochs": round(progress.epochs, 2),
            "last_loss": round(loss, 4),
            "held_out": judged,
        }
        if arguments.start is not None:
            report["went_on_from"] = json.loads(
                (arguments.start / kind / "report.json").read_text()
            )
        write_json(arguments.out / kind / "report.json", report)
        print(kind, report, flush=True)


def recipe_of(arguments: argparse.Namespace) -> dict[str, object]:
    """Return what a run can be repeated from, places left out."""
    places = ("command", "model", "dialogues", "out", "start")
    return {name: value for name, value in vars(arguments).items() if name not in places}


def objective_of(
    kind: str,
    arguments: argparse.Namespace,
    target: Target,
    shortlist: Shortlist,
    taps: Sequence[int],
) -> MtpObjective | BlockObjective:
    """Return an untrained drafter of a kind, and what it is to learn."""
    if kind == "mtp":
        mtp = MtpDrafter(target.shape).to(target.device)
        mtp.start_from(target)
        return MtpObjective(mtp, target, shortlist, arguments.steps)
    is_second = kind == "dflash2"
    plan = BlockPlan(
        kind,
        arguments.layers,
        tuple(taps),
        arguments.mask_token,
        arguments.block,
        arguments.conv_group if is_second else 0,
        arguments.selector_rank if is_second else 0,
    )
    block = BlockDrafter(target.shape, plan).to(target.device)
    block.start_from(target)
    return BlockObjective(block, target, shortlist)


if __name__ == "__main__":
    sys.exit(main())
