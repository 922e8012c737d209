"""Warming fills masks ahead of requests and changes nothing that a request can see."""

import pytest

from ninfer.contract import CacheOutcome, OutputConstraint
from ninfer.text import ConstraintCompiler
from ninfer.text.warm_up import WALKS
from support.grammars import VOCABULARY
from support.masks import masks_along


@pytest.fixture(scope="module")
def warm():
    compiler = ConstraintCompiler(VOCABULARY)
    compiler.warm_up()
    return compiler


@pytest.mark.parametrize(("constraint", "answer"), WALKS)
def test_every_walk_is_a_whole_answer_of_its_constraint(warm, constraint, answer):
    matcher = warm.matcher(warm.compile(constraint))
    assert matcher.feed(answer.encode()) == len(answer.encode())
    assert matcher.can_end


def test_warming_keeps_masks_and_is_no_answer_to_a_new_language(warm):
    assert warm.core.rule_cache_bytes > 0
    schema = '{"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}}'
    assert warm.compile(OutputConstraint.json_schema(schema)).cache is CacheOutcome.BUILT


def test_masks_after_warming_are_the_masks_without_it(warm):
    cold = ConstraintCompiler(VOCABULARY)
    schema = '{"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}}'
    text = '{"x":"aé\\n","y":[1,{}]}'.encode()
    for constraint in (OutputConstraint.json_schema(schema), OutputConstraint.json_object()):
        found = [masks_along(c.matcher(c.compile(constraint)), text) for c in (warm, cold)]
        assert found[0] == found[1]
        assert found[0][0].reachable == len(text) + 1
