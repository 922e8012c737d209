# ruff: noqa: E501
"""Differential fuzzing: random schemas against an independent validator.

Whatever the language generates validates; values that do not validate are not in it; refusals name
a place that exists.
"""

import json
import os
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ninfer.contract import JsonPointer, RequestError, UnknownKeywords, UnsatisfiableConstraint
from ninfer.text.schema.reduction import Reduction
from ninfer.text.schema.source import read_schema
from support.schema_forms import Forms
from support.schema_language import accepts, compiled, compiler
from support.schema_strategies import schemas
from support.schema_walks import compact, near_misses, random_word, validator

EXAMPLES = 4000 if os.environ.get("NINFER_SLOW") else 100
WALKS = 6
KNOWN_LIMITS = {"conjunctions", "comparisons", "grammar_rules", "json_depth", "reference_depth"}


def resolve(document, pointer: JsonPointer):
    for token in pointer.tokens:
        document = document[int(token)] if isinstance(document, list) else document[token]
    return document


def check_refusal(schema, error: RequestError):
    assert isinstance(error.location, JsonPointer), error
    resolve(schema, error.location)


def check_language(schema, seed: int):
    judge = validator(schema)
    source = random.Random(seed)
    forms = Forms(Reduction(read_schema(json.dumps(schema), UnknownKeywords.REFUSE)))
    for _ in range(WALKS):
        word = random_word(compiler().matcher(compiled(schema)), source)
        if word is None:
            continue
        value = json.loads(word.decode())
        if "Infinity" in compact(value):
            continue  # the empty schema allows numbers that this reader does not have
        assert judge.is_valid(value), f"{schema} generates {word!r}"
        assert forms.has(value, forms.reduction.root), f"{schema}: the form lacks {word!r}"
        for miss in near_misses(value, source):
            valid = judge.is_valid(miss)
            assert valid or not any(accepts(schema, t) for t in forms.texts(miss)), compact(miss)


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(schemas(), st.integers(0, 2**32))
def test_random_walks_validate_and_near_misses_are_unreachable(schema, seed):
    try:
        compiled(schema)
    except UnsatisfiableConstraint as error:
        check_refusal(schema, error)
        return
    except RequestError as error:
        check_refusal(schema, error)
        return
    check_language(schema, seed)


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(schemas(), st.lists(st.integers(0, 2**32), min_size=1, max_size=1))
def test_unsatisfiable_means_that_no_simple_value_is_valid(schema, seeds):
    try:
        compiled(schema)
    except UnsatisfiableConstraint:
        judge = validator(schema)
        for value in SIMPLE_VALUES:
            assert not judge.is_valid(value), f"{schema} is satisfied by {value}"
    except RequestError:
        return


SIMPLE_VALUES = [
    None, True, False, 0, 1, 5, -3, 0.5, "", "a", "ab", "k1", "0", "xyz", [], [0], ["a"], [None, 1], {},
    {"a": 1}, {"b": "a"}, {"a": None, "b": 0}, {"k1": [], "ab": {}}, {"zz": 1}, [[], {}], {"a": {"a": {}}},
]  # fmt: skip
