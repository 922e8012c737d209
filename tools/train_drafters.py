"""Train an MTP drafter for a dense target on text that the target writes itself.

    python tools/train_drafters.py --model FOLDER --out FOLDER [--minutes 6] [--columns 256]

Needs a CUDA device for anything worth shipping; on a CPU it runs, slowly, for the tests. The
folder it writes holds config.json and model.safetensors as ninfer.runtime reads them, and
report.json says how the drafter was made and what it reaches on held-out dialogues.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
from drafters.corpus import Dialogue, batches, write_dialogues
from drafters.mtp import MtpDrafter
from drafters.objective import acceptance, loss_of
from drafters.target import Target
from drafters.writing import Writer
from safetensors.torch import save_file
from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that a run can be repeated from; ``minutes`` are wall clock, writing included."""

    minutes: float
    writing_share: float
    columns: int
    writing_rows: int
    batch_rows: int
    steps: int
    learning_rate: float
    shortlist: int
    seed: int


def main() -> int:
    """Write text, train, evaluate, save."""
    arguments = parse()
    recipe = Recipe(
        arguments.minutes, 0.3, arguments.columns, arguments.writing_rows,
        arguments.batch_rows, arguments.steps, arguments.learning_rate,
        arguments.shortlist, arguments.seed,
    )  # fmt: skip
    torch.manual_seed(recipe.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    target = Target(arguments.model, device, dtype)
    started = time.monotonic()
    dialogues = corpus(arguments.model, target, recipe, started)
    held_out, dialogues = dialogues[: recipe.batch_rows * 2], dialogues[recipe.batch_rows * 2 :]
    drafter = MtpDrafter(target.shape).to(device)
    drafter.start_from(target)
    report = train(drafter, target, dialogues, held_out, recipe, started)
    save(arguments.out, drafter, target, dialogues, recipe, report)
    return 0


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--model", type=Path, required=True, help="Hugging Face folder of the target"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--writing-rows", type=int, default=1024)
    parser.add_argument("--batch-rows", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=6e-4)
    parser.add_argument("--shortlist", type=int, default=8192)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def corpus(folder: Path, target: Target, recipe: Recipe, started: float) -> list[Dialogue]:
    """Let the target write until its share of the time is used."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    config = json.loads((folder / "generation_config.json").read_text())
    source = random.Random(recipe.seed)
    writer = Writer(target, recipe.writing_rows, recipe.columns)
    dialogues: list[Dialogue] = []
    enough = 4 * recipe.batch_rows
    deadline = started + 60 * recipe.minutes * recipe.writing_share
    while time.monotonic() < deadline or len(dialogues) < enough:
        dialogues += write_dialogues(
            writer,
            recipe.writing_rows,
            lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
            lambda ids: tokenizer.decode(ids, skip_special_tokens=False),
            config["eos_token_id"],
            source,
        )
        tokens = sum(len(d.tokens) - d.answer for d in dialogues)
        print(f"{time.monotonic() - started:6.1f} s  {len(dialogues)} dialogues, {tokens} tokens")
    for dialogue in source.sample(dialogues, min(4, len(dialogues))):
        print(repr(tokenizer.decode(dialogue.tokens[dialogue.answer :])[:160]))
    source.shuffle(dialogues)
    return dialogues


def train(
    drafter: MtpDrafter,
    target: Target,
    dialogues: Sequence[Dialogue],
    held_out: Sequence[Dialogue],
    recipe: Recipe,
    started: float,
) -> dict[str, object]:
    """Run AdamW with a cosine over the remaining time; return what was reached."""
    source = random.Random(recipe.seed)
    optimizer = torch.optim.AdamW(drafter.parameters(), lr=recipe.learning_rate, weight_decay=0.01)
    begun, end = time.monotonic(), started + 60 * recipe.minutes
    done, epochs, seen = False, 0, 0
    while not done:
        for tokens, answered in batches(dialogues, recipe.batch_rows, target.device, source):
            passed = (time.monotonic() - begun) / max(end - begun, 1e-9)
            if done := passed >= 1 and seen > 0:
                break
            warm = min(1.0, (seen + 1) / 50)
            rate = warm * 0.5 * (1 + math.cos(math.pi * min(passed, 1.0)))
            optimizer.param_groups[0]["lr"] = recipe.learning_rate * max(rate, 0.02)
            with torch.autocast(
                target.device.type, torch.bfloat16, enabled=target.device.type == "cuda"
            ):
                loss = loss_of(drafter, target, tokens, answered, recipe.steps)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(drafter.parameters(), 1.0)
            optimizer.step()
            seen += 1
            if seen % 200 == 1:
                print(f"{time.monotonic() - started:6.1f} s  step {seen}  loss {loss.item():.3f}")
        epochs += 1
    rates, accepted = evaluate(drafter, target, held_out, recipe)
    print(f"accepted given all before: {[round(r, 3) for r in rates]}, mean {accepted:.3f}")
    answer_tokens = sum(len(d.tokens) - d.answer for d in dialogues)
    return {
        "recipe": asdict(recipe),
        "dialogues": len(dialogues),
        "answer_tokens": answer_tokens,
        "optimizer_steps": seen,
        "epochs": epochs,
        "held_out_acceptance": rates,
        "held_out_mean_accepted": accepted,
    }


def evaluate(
    drafter: MtpDrafter, target: Target, held_out: Sequence[Dialogue], recipe: Recipe
) -> tuple[list[float], float]:
    """Return acceptance over the held-out dialogues."""
    rows = min(recipe.batch_rows, len(held_out))
    tokens, answered = next(batches(held_out, rows, target.device, random.Random(0)))
    with torch.autocast(target.device.type, torch.bfloat16, enabled=target.device.type == "cuda"):
        return acceptance(drafter, target, tokens, answered, recipe.steps)


def save(
    folder: Path,
    drafter: MtpDrafter,
    target: Target,
    dialogues: Sequence[Dialogue],
    recipe: Recipe,
    report: dict[str, object],
) -> None:
    """Write config.json, model.safetensors and report.json."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = Counter(token for d in dialogues for token in d.tokens[d.answer :])
    frequent = sorted(token for token, _ in counts.most_common(recipe.shortlist))
    covered = sum(counts[token] for token in frequent) / max(sum(counts.values()), 1)
    tensors = drafter.tensors() | {"shortlist": torch.tensor(frequent, dtype=torch.int32)}
    save_file(tensors, str(folder / "model.safetensors"))
    s = target.shape
    config = {
        "drafter": "mtp",
        "hidden": s.hidden,
        "heads": s.heads,
        "kv_heads": s.kv_heads,
        "head_dim": s.head_dim,
        "ffn": s.ffn,
        "vocab_rows": s.vocab,
        "norm_eps": s.norm_eps,
        "rope_theta": s.rope_theta,
        "norm_offset": 0,
        "qk_norm": False,
        "gated_attention": False,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    report = report | {"shortlist_coverage": covered}
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))


if __name__ == "__main__":
    sys.exit(main())
