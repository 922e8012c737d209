"""One tree of errors, each with a stable code and a printable place."""

import inspect

import pytest

from ninfer import contract
from ninfer.contract import (
    ConflictingOptions,
    ConstraintKind,
    JsonPointer,
    NInferError,
    Origin,
    RequestError,
    UnsatisfiableConstraint,
    UnsupportedSchema,
)

ERRORS = [
    value
    for value in vars(contract).values()
    if inspect.isclass(value) and issubclass(value, Exception)
]


def test_every_error_descends_from_the_one_root_and_is_drawn_in_the_tree():
    tree = contract.errors.__doc__
    for error in ERRORS:
        assert issubclass(error, NInferError)
        assert error.__name__ in tree


def test_a_place_and_a_tool_stand_before_the_fact():
    pointer = JsonPointer(("properties", "a"))
    assert str(RequestError("is odd", location=pointer)) == "/properties/a: is odd"
    tool = UnsupportedSchema(
        "not supported", keyword="not", location=pointer, origin=Origin("lookup")
    )
    assert str(tool) == "tool:lookup /properties/a: not supported"
    assert str(RequestError("is odd")) == "is odd"


def test_conflicts_name_both_options():
    assert ConflictingOptions("--regex", "--choice").options == ("--regex", "--choice")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ConstraintKind.JSON_SCHEMA, "unsatisfiable_json_schema"),
        (ConstraintKind.GRAMMAR, "unsatisfiable_constraint"),
    ],
)
def test_unsatisfiable_schemas_keep_the_protocol_word(kind, code):
    assert UnsatisfiableConstraint("no value", kind=kind).code == code
