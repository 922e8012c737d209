#!/usr/bin/env python3
"""Score JSON Schema suites against the product, schema by schema.

    tools/schema_suite.py --suite FILE [--suite FILE ...] [--limit N] [--out scores.jsonl]

A suite is either MaskBench lines (``id``, ``schema``, ``tests``) or the JSON-Schema-Test-Suite in
one file (``files``); both may be gzipped. Scores: ``refused`` (an error with a place), ``exact``,
``narrow`` (a valid instance is not in the language), ``UNSOUND`` (an invalid one is), ``slow``,
``crash``. The table goes to stdout, and so does the last line: one JSON object with the counts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import thread_time
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from ninfer.contract import (  # noqa: E402
    OutputConstraint,
    RequestError,
    UnknownKeywords,
    UnsatisfiableConstraint,
    UnsupportedSchema,
)
from ninfer.text import Compiled, ConstraintCompiler  # noqa: E402
from ninfer.text.schema.reduction import Reduction  # noqa: E402
from ninfer.text.schema.source import read_schema  # noqa: E402
from support.schema_forms import Forms, number_texts  # noqa: E402
from support.vocabularies import byte_vocabulary  # noqa: E402

SCORES = ("exact", "narrow", "refused", "slow", "UNSOUND", "crash")
SLOW_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Case:
    """One schema with its instances; ``group`` is the sub-collection it is counted in."""

    name: str
    group: str
    schema: Any
    tests: list[dict[str, Any]]


@dataclass(slots=True)
class Score:
    """What became of one case."""

    case: Case
    score: str
    reason: str = ""
    seconds: float = 0.0
    accepted: int = 0
    valid: int = 0
    formless: int = 0
    misses: list[Any] = field(default_factory=list)


def read_suite(path: Path) -> Iterator[Case]:
    """Yield the cases of either file form."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    whole = None if b"\n{" in text else json.loads(text)
    if isinstance(whole, dict) and "files" in whole:
        for group, schemas in whole["files"].items():
            dialect = group.split("/")[0]
            for entry in schemas:
                name = f"{group}: {entry['description']}"
                yield Case(name, group, _declared(entry["schema"], dialect), entry["tests"])
        return
    for line in text.splitlines():
        entry = json.loads(line)
        group = entry["id"].split("---")[0]
        group = "BFCL" if group.startswith("BFCL") else group
        yield Case(entry["id"], group, entry["schema"], entry["tests"])


def _declared(schema: Any, dialect: str) -> Any:
    """Return a schema of the official suite with the dialect its folder means."""
    if isinstance(schema, dict) and dialect == "draft7" and "$schema" not in schema:
        return {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
    return schema


class Product:
    """The product behind one unknown-keyword policy."""

    def __init__(self, unknown: UnknownKeywords) -> None:
        self.unknown = unknown
        self.compiler = ConstraintCompiler(byte_vocabulary())

    def score(self, case: Case) -> Score:
        """Compile one case and hold its instances against the language."""
        source = json.dumps(case.schema, ensure_ascii=False)
        start = thread_time()
        try:
            compiled = self.compiler.compile(OutputConstraint.json_schema(source, self.unknown))
        except RequestError as error:
            seconds = thread_time() - start
            if isinstance(error, UnsatisfiableConstraint):
                return self._unsatisfiable(case, seconds)
            kind = error.keyword if isinstance(error, UnsupportedSchema) else error.code
            name = "slow" if seconds > SLOW_SECONDS else "refused" if error.location else "crash"
            return Score(case, name, f"{kind}: {error}", seconds)
        except Exception as error:
            return Score(case, "crash", f"{type(error).__name__}: {error}", thread_time() - start)
        seconds = thread_time() - start
        if seconds > SLOW_SECONDS:
            return Score(case, "slow", f"{seconds:.1f} s", seconds)
        return self._judged(case, compiled, source, seconds)

    def _unsatisfiable(self, case: Case, seconds: float) -> Score:
        """Return the score of an empty language, which is right where nothing is valid."""
        valid = [test["data"] for test in case.tests if test["valid"]]
        name = "narrow" if valid else "exact"
        return Score(case, name, "unsatisfiable", seconds, 0, len(valid), 0, valid)

    def _judged(self, case: Case, compiled: Compiled, source: str, seconds: float) -> Score:
        forms = Forms(Reduction(read_schema(source, self.unknown)))
        score = Score(case, "exact", "", seconds)
        for test in case.tests:
            taken = [t for t in forms.texts(test["data"]) if self._accepts(compiled, t)]
            if not test["valid"]:
                if taken:
                    return Score(case, "UNSOUND", taken[0], seconds)
                continue
            score.valid += 1
            score.accepted += bool(taken)
            if not taken:
                score.score = "narrow"
                score.formless += _is_formless(test["data"])
                score.misses.append(test["data"])
        return score

    def _accepts(self, compiled: Compiled, text: str) -> bool:
        matcher = self.compiler.matcher(compiled)
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return False
        return matcher.feed(data) == len(data) and matcher.can_end


def _is_formless(instance: Any) -> bool:
    """Return whether a number inside has no spelling that the language writes."""
    for text in number_texts(instance):
        digits = text.lower().split("e")[0].lstrip("-").replace(".", "").strip("0")
        is_whole = text.lstrip("-").isdigit()
        if is_whole and not -(1 << 63) <= int(text) < 1 << 63:
            return True
        if text.endswith(".0") or (not is_whole and len(digits) > 17):
            return True
    return False


def table(scores: list[Score]) -> str:
    """Return the counts by sub-collection, largest first."""
    groups: dict[str, Counter[str]] = {}
    for score in scores:
        groups.setdefault(score.case.group, Counter())[score.score] += 1
    lines = [f"{'':34}" + "".join(f"{name:>9}" for name in SCORES)]
    total = Counter(score.score for score in scores)
    ranked = sorted(groups.items(), key=lambda item: (-item[1].total(), item[0]))
    for group, counts in [*ranked, ("all", total)]:
        lines.append(f"{group:34}" + "".join(f"{counts[name]:9}" for name in SCORES))
    return "\n".join(lines)


def summary(scores: list[Score]) -> dict[str, Any]:
    """Return the counts and figures of a run."""
    counts = Counter(score.score for score in scores)
    times = sorted(score.seconds for score in scores)
    valid = sum(s.valid for s in scores)
    accepted = sum(s.accepted for s in scores)
    formless = sum(s.formless for s in scores)
    compiled = counts["exact"] + counts["narrow"] + counts["UNSOUND"]
    return {
        **{name: counts[name] for name in SCORES},
        "schemas": len(scores),
        "compiled_share": round(compiled / max(len(scores), 1), 4),
        "valid_instances": valid,
        "accepted_instances": accepted,
        "formless_instances": formless,
        "accepted_share": round(accepted / max(valid - formless, 1), 4),
        "compile_ms_p50": round(1e3 * times[len(times) // 2], 2) if times else 0,
        "compile_ms_p99": round(1e3 * times[len(times) * 99 // 100], 2) if times else 0,
        "compile_ms_max": round(1e3 * times[-1], 2) if times else 0,
    }


def reasons(scores: list[Score], name: str) -> list[tuple[str, int]]:
    """Return why schemas have a score, most frequent first."""
    found = Counter(s.reason.split(":")[0] for s in scores if s.score == name)
    return found.most_common()


def main() -> int:
    """Run the suites; the status is 1 where anything is UNSOUND or crashed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", type=Path, action="append", required=True)
    parser.add_argument("--limit", type=int, help="only the first N schemas of each suite")
    parser.add_argument("--out", type=Path, help="one JSON line a schema, worst first")
    parser.add_argument("--unknown-keywords", choices=("refuse", "annotate"), default="refuse")
    arguments = parser.parse_args()
    product = Product(UnknownKeywords(arguments.unknown_keywords))
    scores = [
        product.score(case)
        for path in arguments.suite
        for case in list(read_suite(path))[: arguments.limit]
    ]
    scores.sort(key=lambda s: (-SCORES.index(s.score), s.case.name))
    if arguments.out:
        arguments.out.write_text("".join(json.dumps(_line(s)) + "\n" for s in scores))
    print(table(scores))
    print("refused for:", reasons(scores, "refused")[:40])
    counts = summary(scores)
    print(json.dumps(counts))
    return 1 if counts["UNSOUND"] or counts["crash"] else 0


def _line(score: Score) -> dict[str, Any]:
    return {
        "id": score.case.name,
        "score": score.score,
        "reason": score.reason,
        "ms": round(1e3 * score.seconds, 2),
        "misses": [json.dumps(miss, ensure_ascii=False)[:300] for miss in score.misses[:3]],
    }


if __name__ == "__main__":
    sys.exit(main())
