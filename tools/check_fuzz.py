#!/usr/bin/env python3
"""Look for constraints of at most 64 KiB that cost more than 2 s or 512 MiB to check.

    tools/check_fuzz.py [--seconds 600] [--seed 0] [--kind regex] [--family words] [--keep FOLDER]

Cases come from ``tests/support/heavy``: seeds, families and sizes in turn, smaller sizes first,
each in a process of its own. Every finding is one JSON line; ``--keep`` writes its source into a
file. The last line counts cases and names the costliest of every family. The exit status is 1 with
findings.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.heavy import FAMILIES, SOURCE_BYTES, Heavy, heavy  # noqa: E402
from support.heavy.trial import ROUTES, Cost, cost_of  # noqa: E402

SIZES = (200, 1_000, 4_000, 16_000, 40_000, 64_000)


def main() -> int:
    """Run until the time is over and return the exit status."""
    flags = _flags()
    worst: dict[str, dict[str, Any]] = {}
    findings = cases = 0
    deadline = monotonic() + flags.seconds
    for case in _cases(flags):
        if monotonic() > deadline:
            break
        cases += 1
        for route in flags.route or ROUTES[:1]:
            cost = cost_of(case.constraint, route)
            record = _record(case, cost)
            name = f"{case.kind} {case.family} {route}"
            if cost.seconds >= worst.get(name, {"seconds": -1.0})["seconds"]:
                worst[name] = record
            if not cost.is_kept:
                findings += 1
                print(json.dumps(record), flush=True)
                _keep(case, flags.keep)
    print(json.dumps({"cases": cases, "findings": findings, "worst": list(worst.values())}))
    return 1 if findings else 0


def _cases(flags: argparse.Namespace) -> Iterator[Heavy]:
    names = [
        (kind, family)
        for kind, family in FAMILIES
        if flags.kind in (None, kind) and flags.family in (None, family)
    ]
    seed = flags.seed
    while True:
        for size in SIZES:
            for kind, family in names:
                exact = Random(f"{seed} {size}").randint(size // 2, size)
                found = heavy(kind, family, seed, exact) or heavy(kind, family, seed, exact // 4)
                if found is not None:
                    yield found
        seed += 1


def _record(case: Heavy, cost: Cost) -> dict[str, Any]:
    return {
        "kind": case.kind,
        "family": case.family,
        "seed": case.seed,
        "size": case.size,
        "source_bytes": case.source_bytes,
        "route": cost.route,
        "outcome": cost.outcome,
        "seconds": round(cost.seconds, 3),
        "megabytes": round(cost.memory_bytes / 1e6, 1),
    }


def _keep(case: Heavy, folder: Path | None) -> None:
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    text = case.constraint.source or json.dumps(case.constraint.literals)
    name = f"{case.kind}-{case.family}-{case.seed}-{case.size}.txt"
    (folder / name).write_text(text, encoding="utf-8")


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="of wall clock")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", help=f"one of {sorted({kind for kind, _ in FAMILIES})}")
    parser.add_argument("--family")
    parser.add_argument("--route", action="append", choices=ROUTES, help="without it check alone")
    parser.add_argument("--keep", type=Path, help="folder for the sources of findings")
    flags = parser.parse_args()
    assert SIZES[-1] < SOURCE_BYTES
    return flags


if __name__ == "__main__":
    sys.exit(main())
