#!/usr/bin/env python3
"""Measure decode rounds under schemas beside free ones, on a random model of a real one's shape.

    tools/gpu_rounds.py                        the table of docs/performance.md, on a CUDA device
    tools/gpu_rounds.py --shape tiny --device cpu --segments 1 --rounds 20

Every case answers the same prompts with the same number of columns, constrained or free. *Random*
rounds take the drafter's own drafts, which a random target rejects; *right* rounds replay the
recorded answer as drafts, so that lookaheads go through the schemas to their end. A round is
decode, the matchers' preview and commit, and the program's commit. Build the library first
(tools/build_cuda).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]
from gpu_rounds_case import Case, Figures, Plan  # noqa: E402
from gpu_rounds_model import SHAPES, random_model  # noqa: E402
from gpu_rounds_schemas import SCHEMAS  # noqa: E402

from ninfer.contract import OutputConstraint, SpeculativeBackend  # noqa: E402
from ninfer.ops import capabilities  # noqa: E402
from ninfer.runtime.program import RoundForm  # noqa: E402
from ninfer.text import ConstraintCompiler, Matcher  # noqa: E402
from support.vocabularies import qwen_vocabulary  # noqa: E402


def main() -> int:
    """Measure every case that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="qwen3.5-2b")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--backends", default="none,mtp,dflash,dflash2")
    parser.add_argument("--forms", default="captured,staged")
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--drafts", type=int, default=7)
    parser.add_argument("--threads", type=int, default=4, help="native threads that fill masks")
    parser.add_argument("--segments", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=96)
    parser.add_argument("--prompt", type=int, default=512, help="tokens before the first round")
    chosen = parser.parse_args()
    least = 2 * (chosen.drafts + 1) + 1
    if chosen.rounds < least:
        parser.error(f"--rounds: {chosen.rounds}, and right drafts need an answer of {least}")
    torch.set_num_threads(1)
    name = torch.cuda.get_device_name() if chosen.device == "cuda" else chosen.device
    print(name, torch.__version__, capabilities().reason, flush=True)
    compiler = ConstraintCompiler(qwen_vocabulary())
    languages = [compiler.compile(OutputConstraint.json_schema(text)) for text in SCHEMAS]

    def schemas() -> list[Matcher]:
        rows = range(chosen.rows)
        return [compiler.matcher(languages[row % len(languages)]) for row in rows]

    model = random_model(SHAPES[chosen.shape], chosen.device)
    plan = Plan(chosen.rows, chosen.drafts, chosen.threads, chosen.rounds, chosen.prompt)
    lines = []
    for backend in map(SpeculativeBackend, chosen.backends.split(",")):
        for form in map(RoundForm, chosen.forms.split(",")):
            case = Case(model, SHAPES[chosen.shape], backend, form, plan)
            segments = chosen.segments if form is RoundForm.CAPTURED else 1
            lines += measured(
                case, segments, schemas, {"backend": backend.value, "form": form.value}
            )
            del case
    print_table(lines)
    return 0


def measured(
    case: Case, segments: int, schemas: Callable[[], list[Matcher]], names: dict[str, str]
) -> list[dict[str, object]]:
    """Return and print one line for each kind of round, free and constrained ones in turn."""
    free: dict[str, list[Figures]] = {}
    bound: dict[str, list[Figures]] = {}
    case.segment(0, schemas)
    for number in range(1, segments + 1):
        for rounds, matchers_of in ((free, lambda: None), (bound, schemas)):
            for drafts, figures in case.segment(number, matchers_of).items():
                rounds.setdefault(drafts, []).extend(figures)
    lines = []
    for drafts in free:
        for language, rounds in (("free", free[drafts]), ("schemas", bound[drafts])):
            line: dict[str, object] = names | {"drafts": drafts, "language": language}
            line["rounds"] = len(rounds)
            for key in rounds[0]:
                line[key] = round(statistics.median(figure[key] for figure in rounds), 4)
            line["mean"] = round(statistics.mean(figure["round"] for figure in rounds), 4)
            slow = sorted(figure["round"] for figure in rounds)[len(rounds) * 9 // 10]
            line["p90"] = round(slow, 4)
            line["start_seconds"] = round(case.start_seconds, 2)
            lines.append(line)
            print(json.dumps(line), flush=True)
    return lines


def print_table(lines: list[dict[str, object]]) -> None:
    """Print the lines of docs/performance.md: free beside constrained."""
    print("| backend | form | drafts | tokens | masks | fill | exposed | free | schemas | ratio |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for free, bound in zip(lines[::2], lines[1::2], strict=True):
        took, other = float(str(bound["round"])), float(str(free["round"]))
        print(
            f"| {free['backend']} | {free['form']} | {free['drafts']} | {bound['tokens']} "
            f"| {bound['masks']} | {bound['fill']} | {bound['exposed']} | {other} | {took} "
            f"| {took / other:.3f} |"
        )


if __name__ == "__main__":
    sys.exit(main())
