"""Warming fills masks ahead of requests and changes nothing that a request can see."""

import threading

import pytest

from ninfer.contract import CacheOutcome, OutputConstraint, TokenVocabulary, WarmUpStop
from ninfer.text import ConstraintCompiler
from ninfer.text.schema.warm import SCHEMA_WALKS
from ninfer.text.warm_up import PATTERN_WALKS, WALKS
from support.grammars import VOCABULARY
from support.masks import masks_along


@pytest.fixture(scope="module")
def warm():
    compiler = ConstraintCompiler(VOCABULARY)
    compiler.warm_up()
    return compiler


SCHEMA = '{"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}}'


@pytest.mark.parametrize(("constraint", "answer"), [*WALKS, *PATTERN_WALKS])
def test_every_walk_is_a_whole_answer_of_its_constraint(warm, constraint, answer):
    matcher = warm.matcher(warm.compile(constraint))
    assert matcher.feed(answer.encode()) == len(answer.encode())
    assert matcher.can_end


def test_warming_keeps_masks_and_is_no_answer_to_a_new_language(warm):
    assert warm.core.rule_cache_bytes > 0
    assert warm.compile(OutputConstraint.json_schema(SCHEMA)).cache is CacheOutcome.BUILT


def test_masks_after_warming_are_the_masks_without_it(warm):
    cold = ConstraintCompiler(VOCABULARY)
    text = '{"x":"aé\\n","y":[1,{}]}'.encode()
    for constraint in (OutputConstraint.json_schema(SCHEMA), OutputConstraint.json_object()):
        found = [masks_along(c.matcher(c.compile(constraint)), text) for c in (warm, cold)]
        assert found[0] == found[1]
        assert found[0][0].reachable == len(text) + 1


def everything(report):
    return [*report.done, *(left.language for left in report.left_out)]


def test_a_warm_up_says_what_it_did():
    compiler = ConstraintCompiler(VOCABULARY)
    report = compiler.warm_up()
    assert len(report.done) == len(WALKS) + len(SCHEMA_WALKS) + len(PATTERN_WALKS)
    assert report.left_out == ()
    assert report.done[0] == "json_object"
    assert 'json_schema {"type":"string","minLength":1}' in report.done
    assert 0 < report.seconds < 60
    assert report.cache_bytes == compiler.core.rule_cache_bytes + compiler.cached_bytes


@pytest.mark.parametrize(
    ("limits", "reason", "done"),
    [
        ({"seconds": 0.0}, WarmUpStop.SECONDS, 0),
        ({"seconds": 1e-9}, WarmUpStop.SECONDS, 0),
        ({"cache_bytes": 0}, WarmUpStop.BYTES, 0),
        ({"cache_bytes": 1}, WarmUpStop.BYTES, 1),
        ({"is_wanted": lambda: False}, WarmUpStop.STOPPED, 0),
    ],
)
def test_a_passed_limit_leaves_out_the_rest_by_name(limits, reason, done):
    compiler = ConstraintCompiler(VOCABULARY)
    report = compiler.warm_up(**limits)
    assert len(report.done) == done
    assert {left.reason for left in report.left_out} == {reason}
    assert everything(report) == everything(ConstraintCompiler(VOCABULARY).warm_up())
    cold = ConstraintCompiler(VOCABULARY)
    text = b'{"x":"a"}'
    first, second = (
        masks_along(c.matcher(c.compile(OutputConstraint.json_schema(SCHEMA))), text)
        for c in (compiler, cold)
    )
    assert first == second


def test_a_warm_up_that_is_no_longer_wanted_ends_after_the_language_at_hand():
    answers = iter([True, True, True, False])
    report = ConstraintCompiler(VOCABULARY).warm_up(is_wanted=lambda: next(answers))
    assert len(report.done) == 3
    assert {left.reason for left in report.left_out} == {WarmUpStop.STOPPED}


def test_what_a_vocabulary_cannot_begin_is_left_out_and_the_rest_is_done():
    letters = [bytes([byte]) for byte in b"abcdefghijklmnopqrstuvwxyz"]
    vocabulary = TokenVocabulary.build([*letters, b""], eos=[len(letters)])
    report = ConstraintCompiler(vocabulary).warm_up()
    assert "regex [a-z]+" in report.done
    assert {left.reason for left in report.left_out} == {WarmUpStop.REFUSED}
    assert "json_object" in {left.language for left in report.left_out}


def test_requests_compile_while_a_warm_up_runs():
    compiler = ConstraintCompiler(VOCABULARY)
    stop, reports = threading.Event(), []

    def warm():
        while not stop.is_set():
            reports.append(compiler.warm_up(is_wanted=lambda: not stop.is_set()))

    thread = threading.Thread(target=warm)
    thread.start()
    try:
        for number in range(20):
            compiled = compiler.compile(OutputConstraint.regex(f"[a-z]{{{number}}}[0-9]+x"))
            matcher = compiler.matcher(compiled)
            assert matcher.feed(b"a" * number + b"1x") == number + 2
            assert matcher.can_end
    finally:
        stop.set()
        thread.join(30)
    assert reports
