"""The ratchet: no schema of the public suites may score worse than its recorded rank."""

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
BASELINES = Path(__file__).parent / "baselines"
SUITES = {
    "json-schema-test-suite": ("json-schema-test-suite.json.gz", 6),
    "maskbench-dev": ("maskbench-dev.jsonl.gz", 30),
}


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("schema_suite", ROOT / "tools/schema_suite.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["schema_suite"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["schema_suite"]


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_no_schema_scores_worse_than_recorded(tool, suite):
    name, step = SUITES[suite]
    if not (DATA / name).is_file():
        pytest.skip(f"needs ../shared/data/{name}")
    recorded = json.loads((BASELINES / f"{suite}.json").read_text())
    cases = list(tool.read_suite(DATA / name))
    if not os.environ.get("NINFER_SLOW"):
        cases = cases[::step]
    ours = tool.Ours()
    worse = {}
    for case in cases:
        score = tool.score_case(case, ours)
        assert score.score not in ("UNSOUND", "crash"), (case.name, score.reason)
        allowed = recorded.get(case.name, "exact")
        if tool.RANKS.index(score.score) > tool.RANKS.index(allowed):
            worse[case.name] = (allowed, score.score, score.reason)
    assert worse == {}


@pytest.mark.parametrize("suite", SUITES)
def test_the_record_holds_no_wrong_acceptance(suite):
    recorded = json.loads((BASELINES / f"{suite}.json").read_text())
    assert not set(recorded.values()) & {"UNSOUND", "crash", "slow"}


def test_both_file_forms_are_read_and_the_last_line_is_json(tool, tmp_path, capsys, monkeypatch):
    lines = tmp_path / "bench.jsonl"
    cases = [
        {"id": "G---1", "schema": {"type": "integer"}, "tests": [{"valid": True, "data": 1}]},
        {"id": "G---2", "schema": {"zzz": 1}, "tests": []},
        {"id": "G---3", "schema": {"type": "integer"}, "tests": [{"valid": True, "data": 1.0}]},
    ]
    lines.write_text("".join(json.dumps(case) + "\n" for case in cases))
    official = tmp_path / "official.json"
    entry = {"description": "d", "schema": {"type": "null"}, "tests": [{"data": 1, "valid": False}]}
    official.write_text(json.dumps({"files": {"draft7/type": [entry]}}))
    out = tmp_path / "scores.jsonl"
    arguments = ["--suite", str(lines), "--suite", str(official), "--out", str(out), "--walks", "2"]
    monkeypatch.setattr(sys, "argv", ["schema_suite.py", *arguments])
    assert tool.main() == 0
    counts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (counts["exact"], counts["narrow"], counts["refused"]) == (2, 1, 1)
    assert counts["invalid_walks"] == 0
    assert counts["walks"] > 0
    scores = [json.loads(line) for line in out.read_text().splitlines()]
    assert [s["score"] for s in scores] == ["refused", "narrow", "exact", "exact"]
    assert "/zzz" in scores[0]["reason"]
