#!/usr/bin/env python3
"""Score JSON Schema suites against the product, schema by schema.

    tools/schema_suite.py --suite FILE [--suite FILE ...] [--limit N] [--out scores.jsonl]

A suite is either MaskBench lines (``id``, ``schema``, ``tests``) or the JSON-Schema-Test-Suite in
one file (``files``); both may be gzipped. Scores: ``refused`` (an error with a place), ``exact``,
``narrow`` (a valid instance is not in the language), ``UNSOUND`` (an invalid one is), ``slow``,
``crash``. The table goes to stdout, and so does the last line: one JSON object with the counts.

``--unknown-keywords annotate`` reads unknown keywords as annotations, ``--walks N`` judges N random
words of every compiled schema, ``--against llguidance`` or ``xgrammar`` scores that engine on the
same input, and ``--baseline FILE`` writes the ranks that the ratchet test holds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import thread_time
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from ninfer.contract import RequestError, UnknownKeywords  # noqa: E402
from ninfer.text.schema.reduction import Reduction  # noqa: E402
from ninfer.text.schema.source import read_schema  # noqa: E402
from support.schema_contestants import (  # noqa: E402
    BareCore,
    Contestant,
    Guidance,
    Ours,
    Refused,
    Unsatisfiable,
)
from support.schema_forms import Forms, number_texts  # noqa: E402
from support.schema_walks import random_word, validator  # noqa: E402

RANKS = ("exact", "narrow", "refused", "slow", "UNSOUND", "crash")
SLOW_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Case:
    """One schema with its instances; ``group`` is the sub-collection it is counted in."""

    name: str
    group: str
    schema: Any
    tests: list[dict[str, Any]]

    @property
    def source(self) -> str:
        """Return the schema's text."""
        return json.dumps(self.schema, ensure_ascii=False)


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
            for entry in schemas:
                name = f"{group}: {entry['description']}"
                schema = _declared(entry["schema"], group.split("/")[0])
                yield Case(name, group, schema, entry["tests"])
        return
    for line in filter(None, map(bytes.strip, text.splitlines())):
        entry = json.loads(line)
        group = entry["id"].split("---")[0]
        group = next((known for known in ("BFCL", "JME") if group.startswith(known)), group)
        yield Case(entry["id"], group, entry["schema"], entry["tests"])


def _declared(schema: Any, dialect: str) -> Any:
    """Return a schema of the official suite with the dialect its folder means."""
    if isinstance(schema, dict) and dialect == "draft7" and "$schema" not in schema:
        return {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
    return schema


def score_case(case: Case, contestant: Contestant) -> Score:
    """Compile one case and hold its instances against the language."""
    start = thread_time()
    try:
        accepts = contestant.prepare(case.source)
    except Unsatisfiable:
        valid = [test["data"] for test in case.tests if test["valid"]]
        name, seconds = "narrow" if valid else "exact", thread_time() - start
        return Score(case, name, "unsatisfiable", seconds, 0, len(valid), 0, valid)
    except Refused as error:
        seconds = thread_time() - start
        placed = error.has_place or not isinstance(contestant, Ours)
        name = "slow" if seconds > SLOW_SECONDS else "refused" if placed else "crash"
        return Score(case, name, str(error), seconds)
    except Exception as error:
        return Score(case, "crash", f"{type(error).__name__}: {error}", thread_time() - start)
    seconds = thread_time() - start
    if seconds > SLOW_SECONDS:
        return Score(case, "slow", f"{seconds:.1f} s", seconds)
    return _judged(Score(case, "exact", "", seconds), accepts)


def _judged(score: Score, accepts: Any) -> Score:
    spellings = _spellings(score.case)
    for test in score.case.tests:
        taken = [text for text in spellings(test["data"]) if _is_text(text) and accepts(text)]
        if not test["valid"]:
            if taken:
                return Score(score.case, "UNSOUND", taken[0], score.seconds)
            continue
        score.valid += 1
        score.accepted += bool(taken)
        if not taken:
            score.score = "narrow"
            score.formless += _is_formless(test["data"])
            score.misses.append(test["data"])
    return score


def _spellings(case: Case) -> Any:
    """Return the function from an instance to its texts in the generated form."""
    try:
        return Forms(Reduction(read_schema(case.source, UnknownKeywords.ANNOTATE))).texts
    except RequestError:
        return lambda data: [json.dumps(data, ensure_ascii=False, separators=(",", ":"))]


def _is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


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


def walk(scores: list[Score], ours: Ours, walks: int) -> dict[str, int]:
    """Judge random words of every compiled schema; return how many, and how many are invalid."""
    counts = Counter(walked_schemas=0, walks=0, unfinished_walks=0, invalid_walks=0)
    for score in scores:
        if score.score not in ("exact", "narrow") or score.reason:
            continue
        compiled = ours.compiled(score.case.source)
        judge, source = validator(score.case.schema), random.Random(score.case.name)
        counts["walked_schemas"] += 1
        for _ in range(walks):
            word = random_word(ours.compiler.matcher(compiled), source)
            counts["walks" if word is not None else "unfinished_walks"] += 1
            if word is None:
                continue
            value = json.loads(word)
            if not judge.is_valid(value):
                counts["invalid_walks"] += 1
                print(f"INVALID {score.case.name}: {word.decode()[:300]}")
    return dict(counts)


def table(scores: list[Score]) -> str:
    """Return the counts by sub-collection, largest first."""
    groups: dict[str, Counter[str]] = {}
    for score in scores:
        groups.setdefault(score.case.group, Counter())[score.score] += 1
    lines = [f"{'':40}" + "".join(f"{name:>9}" for name in RANKS)]
    total = Counter(score.score for score in scores)
    ranked = sorted(groups.items(), key=lambda item: (-item[1].total(), item[0]))
    for group, counts in [*ranked, ("all", total)]:
        lines.append(f"{group:40}" + "".join(f"{counts[name]:9}" for name in RANKS))
    return "\n".join(lines)


def summary(scores: list[Score]) -> dict[str, Any]:
    """Return the counts and figures of a run."""
    counts = Counter(score.score for score in scores)
    times = sorted(score.seconds for score in scores) or [0.0]
    valid, accepted = sum(s.valid for s in scores), sum(s.accepted for s in scores)
    formless = sum(s.formless for s in scores)
    compiled = counts["exact"] + counts["narrow"] + counts["UNSOUND"]
    return {
        **{name: counts[name] for name in RANKS},
        "schemas": len(scores),
        "compiled_share": round(compiled / max(len(scores), 1), 4),
        "valid_instances": valid,
        "accepted_instances": accepted,
        "formless_instances": formless,
        "accepted_share": round(accepted / max(valid - formless, 1), 4),
        "compile_ms_p50": round(1e3 * times[len(times) // 2], 2),
        "compile_ms_p99": round(1e3 * times[len(times) * 99 // 100], 2),
        "compile_ms_max": round(1e3 * times[-1], 2),
    }


def baseline(scores: list[Score]) -> dict[str, Any]:
    """Return what the ratchet keeps: every case that is not exact, by its score."""
    return {s.case.name: s.score for s in scores if s.score != "exact"}


def main() -> int:
    """Run the suites; the status is 1 where anything is UNSOUND, crashed or walked astray."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", type=Path, action="append", required=True)
    parser.add_argument("--limit", type=int, help="only the first N schemas of each suite")
    parser.add_argument("--out", type=Path, help="one JSON line a schema, worst first")
    parser.add_argument("--unknown-keywords", choices=("refuse", "annotate"), default="refuse")
    parser.add_argument("--walks", type=int, default=0, help="random words of each schema")
    parser.add_argument("--against", choices=("llguidance", "xgrammar"))
    parser.add_argument("--baseline", type=Path, help="write the ranks for the ratchet test")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    ours = Ours(UnknownKeywords(arguments.unknown_keywords))
    others: dict[str, Contestant] = {"llguidance": Guidance(), "xgrammar": BareCore()}
    contestant = others.get(arguments.against, ours)
    cases = [case for path in arguments.suite for case in [*read_suite(path)][: arguments.limit]]
    scores = [score_case(case, contestant) for case in cases]
    scores.sort(key=lambda s: (-RANKS.index(s.score), s.case.name))
    if arguments.out:
        arguments.out.write_text("".join(json.dumps(_line(s)) + "\n" for s in scores))
    if arguments.baseline:
        arguments.baseline.write_text(json.dumps(baseline(scores), indent=0) + "\n")
    print(table(scores))
    reasons = Counter(s.reason.split(":")[0] for s in scores if s.score == "refused")
    print("refused for:", ", ".join(f"{word} {n}" for word, n in reasons.most_common(40)))
    counts = summary(scores)
    if arguments.walks and contestant is ours:
        counts.update(walk(scores, ours, arguments.walks))
    print(json.dumps(counts))
    return 1 if counts["UNSOUND"] or counts["crash"] or counts.get("invalid_walks") else 0


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
