"""``ninfer bench`` over a scripted engine: the grid, the numbers, the three forms, the chart."""

import csv
import io
import json
import xml.etree.ElementTree as ElementTree

import pytest

from ninfer.cli.bench.chart import Bar, Panel, bar_chart
from ninfer.cli.bench.grid import length_tests
from support.command import Outcome, outcome_of

SVG = "{http://www.w3.org/2000/svg}"
TINY = ("-p", "6", "-n", "3", "-r", "2")


@pytest.fixture
def bench(capsysbinary):
    def run(*arguments: str, **program) -> Outcome:
        script = "a b c d e f g h"
        return outcome_of(capsysbinary, "bench", *arguments, script=script, **program)

    return run


def test_every_test_constraint_and_batch_is_combined(bench):
    outcome = bench(
        *TINY, "-pg", "5,2;7,4", "--constraint", "none,regex", "-b", "1,3", "-o", "json"
    )
    assert outcome.status == 0, outcome.err
    tests = json.loads(outcome.out)["tests"]
    names = ["pp6", "tg3", "pp5+tg2", "pp7+tg4"]
    combined = [(n, c, b) for n in names for c in ("none", "regex") for b in (1, 3)]
    assert [(t["name"], t["constraint"], t["batch"]) for t in tests] == combined
    for test in tests:
        assert len(test["repetitions"]) == 2
        for repetition in test["repetitions"]:
            assert len(repetition["requests"]) == test["batch"]
    assert outcome.err.count("tokens/s\n") == len(combined)


def test_lengths_are_those_asked_for(bench):
    tests = json.loads(bench(*TINY, "-pg", "20,2", "-o", "json").out)["tests"]
    assert [(t["prompt_tokens"], t["output_limit"]) for t in tests] == [(6, 1), (8, 4), (20, 3)]
    for test in tests:
        for repetition in test["repetitions"]:
            assert repetition["output_tokens"] == test["output_limit"]
            assert [r["finish_reason"] for r in repetition["requests"]] == ["output_limit"]


def test_a_repetition_reports_phases_constraint_and_rates(bench):
    outcome = bench("-p", "", "-n", "6", "-r", "1", "--constraint", "schema", "-o", "json")
    record = json.loads(outcome.out)
    (test,) = record["tests"]
    (repetition,) = test["repetitions"]
    (request,) = repetition["requests"]
    timings = request["timings_seconds"]
    assert {"prepare", "prefill", "decode", "total"} <= set(timings)
    assert (
        0
        < timings["prefill"]
        <= timings["total"]
        <= repetition["wall_seconds"] + timings["prepare"]
    )
    later = request["output_tokens"] - 1
    assert repetition["decode_tok_s"] == pytest.approx(later / timings["decode"])
    assert repetition["prefill_tok_s"] == pytest.approx(8 / timings["prefill"])
    assert test["decode_tok_s"]["mean"] == repetition["decode_tok_s"]
    constraint = request["constraint"]
    assert constraint["cache"] == "hit", "the warm-up compiles"
    assert constraint["mask_positions"] == later + 1
    assert constraint["timings_seconds"]["mask"] > 0
    assert record["memory"]["kv_bytes"] > 0
    assert record["load"]["seconds"] > 0
    assert record["options"]["max_context"] == 8 + 7


def test_without_warm_up_the_first_repetition_compiles(bench):
    flags = ("-p", "4", "-n", "", "-r", "2", "--warmup", "0", "--constraint", "choice")
    (test,) = json.loads(bench(*flags, "-o", "json").out)["tests"]
    outcomes = [r["requests"][0]["constraint"]["cache"] for r in test["repetitions"]]
    assert outcomes == ["built", "hit"]


def test_speculation_is_counted(bench):
    drafts = {"draft_limit": 2, "drafter": lambda history: history[-2:]}
    flags = ("-p", "", "-n", "12", "-r", "1", "--spec", "mtp", "--draft-tokens", "2")
    outcome = bench(*flags, "-o", "json", **drafts)
    assert outcome.status == 0, outcome.err
    (test,) = json.loads(outcome.out)["tests"]
    report = test["repetitions"][0]["requests"][0]["speculative"]
    assert report["drafted_tokens"] > 0
    assert report["acceptance_rate"] == report["accepted_tokens"] / report["drafted_tokens"]
    assert report["tokens_per_round"] == 1 + report["accepted_tokens"] / report["rounds"]


def test_csv_has_one_line_per_repetition(bench):
    rows = list(csv.DictReader(io.StringIO(bench(*TINY, "-b", "2", "-o", "csv").out.decode())))
    assert [(r["test"], r["repetition"]) for r in rows] == [
        ("pp6", "0"),
        ("pp6", "1"),
        ("tg3", "0"),
        ("tg3", "1"),
    ]
    assert [r["output_tokens"] for r in rows] == ["2", "2", "8", "8"]
    assert float(rows[0]["decode_tok_s"]) == 0.0
    assert float(rows[2]["decode_tok_s"]) > 0.0


def test_the_table_has_a_line_per_case(bench):
    load, head, *lines = bench(*TINY, "--constraint", "none,json_object").out.decode().splitlines()
    assert load.startswith("model embedded, loaded in ")
    assert head.split()[:3] == ["test", "constraint", "batch"]
    assert [line.split()[:3] for line in lines] == [
        ["pp6", "none", "1"],
        ["pp6", "json_object", "1"],
        ["tg3", "none", "1"],
        ["tg3", "json_object", "1"],
    ]


def test_numbers_and_chart_go_to_files(bench, tmp_path):
    numbers, chart = tmp_path / "bench.json", tmp_path / "bench.svg"
    outcome = bench(*TINY, "-o", "json", "--output-file", str(numbers), "--plot", str(chart))
    assert outcome.status == 0
    assert outcome.out == b""
    tests = json.loads(numbers.read_text())["tests"]
    texts = [node.text for node in ElementTree.parse(chart).iter(SVG + "text")]
    assert "Prompt tokens per second" in texts
    assert texts.count("tg3, none, 1 at once") == 2
    assert texts.count("pp6, none, 1 at once") == 1, "one token says nothing of answers"
    assert f"{tests[0]['prefill_tok_s']['mean']:.1f}" in texts


def test_bars_are_as_long_as_their_values_and_text_is_escaped():
    bars = [Bar("a<b", "x", 10.0), Bar("c", "y", 5.0, deviation=1.0)]
    root = ElementTree.fromstring(bar_chart("<&>", [Panel("p", bars), Panel("empty", [])]))
    _, long, short = (float(node.get("width")) for node in root.iter(SVG + "rect"))
    assert long == pytest.approx(2 * short, abs=0.2)
    assert len(list(root.iter(SVG + "line"))) == 1
    texts = [node.text for node in root.iter(SVG + "text")]
    assert texts[0] == "<&>"
    assert "a<b" in texts
    assert "empty" not in texts


def test_equal_tests_run_once():
    assert [test.name for test in length_tests("4,4", "", "4,2;4,2")] == ["pp4", "pp4+tg2"]


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["-p", "0"], "error: -p: '0' is not a positive whole number"),
        (["-n", "4,x"], "error: -n: 'x' is not a positive whole number"),
        (["-pg", "4"], "error: -pg: '4' is not a pair P,G"),
        (["-p", "", "-n", ""], "error: -p, -n and -pg: no test is left"),
        (["-b", "9"], "error: --batch: '9' is not in 1..8"),
        (["-b", ""], "error: --batch: no number is named"),
        (["--constraint", "xml"], "error: --constraint: 'xml' is not one of none, json_object"),
        (["-r", "0"], "error: --repetitions: "),
        (["--draft-tokens", "3"], "error: --draft-tokens: needs --spec"),
        (["--plot", "/nonexistent/x.svg"], "error: --plot /nonexistent/x.svg: is not a file in"),
        (["-o", "xml"], "error: --output: "),
    ],
)
def test_bad_input_exits_2_before_anything_is_measured(bench, flags, line):
    outcome = bench(*flags)
    assert outcome.status == 2
    assert outcome.out == b""
    assert outcome.err.startswith(line)
    assert outcome.err.count("\n") == 1
