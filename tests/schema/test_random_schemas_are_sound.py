# ruff: noqa: E501
"""Differential fuzzing: random schemas against an independent validator.

Whatever the language generates validates; values that do not validate are not in it; refusals name
a place that exists.
"""

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ninfer.contract import RequestError, UnsatisfiableConstraint
from support.schema_checks import check_language, check_refusal
from support.schema_language import compiled
from support.schema_strategies import schemas
from support.schema_walks import validator

EXAMPLES = 4000 if os.environ.get("NINFER_SLOW") else 100
KNOWN_LIMITS = {"conjunctions", "comparisons", "grammar_rules", "json_depth", "reference_depth"}


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
