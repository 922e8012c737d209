# ruff: noqa: E501
"""Every refusal names the keyword by JSON Pointer, and says of which kind it is."""

import json

import pytest

from ninfer.contract import (
    InvalidSchema,
    JsonPointer,
    UnknownKeywords,
    UnsatisfiableConstraint,
    UnsupportedSchema,
)
from support.schema_language import has_value, refusal

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_04 = "http://json-schema.org/draft-04/schema#"


def check(schema, pointer, kind, keyword=None):
    error = refusal(schema)
    assert isinstance(error, kind), error
    assert isinstance(error.location, JsonPointer)
    assert str(error.location) == pointer
    if keyword is not None:
        assert error.keyword == keyword
    assert str(error).startswith(f"{pointer}: " if pointer else error.fact)


INVALID = [
    ('{"type":"strin"}', "/type"),
    ('{"type":["string","string"]}', "/type"),
    ('{"type":[]}', "/type"),
    ('{"properties":[]}', "/properties"),
    ('{"properties":{"a":1}}', "/properties/a"),
    ('{"properties":{"a":{"enum":[]}}}', "/properties/a/enum"),
    ('{"anyOf":[]}', "/anyOf"),
    ('{"prefixItems":[]}', "/prefixItems"),
    ('{"items":[{}]}', "/items"),
    ('{"minLength":-1}', "/minLength"),
    ('{"minLength":1.5}', "/minLength"),
    ('{"maxItems":2147483648}', "/maxItems"),
    ('{"minimum":"1"}', "/minimum"),
    ('{"minimum":0.12345678901234567890123}', "/minimum"),
    ('{"enum":[1,{"a":[1e400]}]}', "/enum/1/a/0"),
    ('{"const":123456789012345678901234567890}', "/const"),
    ('{"required":"a"}', "/required"),
    ('{"required":["a","a"]}', "/required/1"),
    ('{"required":[1]}', "/required/0"),
    ('{"pattern":1}', "/pattern"),
    ('{"multipleOf":0}', "/multipleOf"),
    ('{"uniqueItems":1}', "/uniqueItems"),
    ('{"$ref":"#/$defs/none"}', "/$ref"),
    ('{"$ref":"#anchor"}', "/$ref"),
    ('{"$ref":"#/properties/a","properties":{"b":{}}}', "/$ref"),
    ('{"$ref":"#"}', "/$ref"),
    ('{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}', None),
    ('{"allOf":[{"$ref":"#"}]}', None),
    ('{"$schema":1}', "/$schema"),
    ('{"$ref":1}', "/$ref"),
    ("[]", ""),
    ("1", ""),
    ('{"not":1}', "/not"),
    ('{"additionalProperties":1}', "/additionalProperties"),
    ('{"$schema":"' + DRAFT_04 + '","exclusiveMinimum":true}', "/exclusiveMinimum"),
    ('{"$schema":"' + DRAFT_04 + '","minimum":1,"exclusiveMinimum":1}', "/exclusiveMinimum"),
]


@pytest.mark.parametrize(("schema", "pointer"), INVALID)
def test_what_is_no_schema_is_invalid(schema, pointer):
    if pointer is None:
        error = refusal(schema)
        assert isinstance(error, InvalidSchema)
        assert str(error.location).endswith("/$ref")
    else:
        check(schema, pointer, InvalidSchema)


UNSUPPORTED = [
    ({"unevaluatedProperties": False}, "/unevaluatedProperties", "unevaluatedProperties"),
    ({"properties": {"a": {"unevaluatedItems": {}}}}, "/properties/a/unevaluatedItems", None),
    ({"$dynamicRef": "#a"}, "/$dynamicRef", None),
    ({"properties": {"a/b~c": {"maxlength": 3}}}, "/properties/a~1b~0c/maxlength", "maxlength"),
    ({"$ref": "https://example.invalid/other.json"}, "/$ref", "$ref"),
    ({"$ref": "other.json#/a"}, "/$ref", "$ref"),
    ({"$schema": "https://json-schema.org/draft-03/schema"}, "/$schema", "$schema"),
    ({"$schema": DRAFT_07, "$defs": {"s": {}}, "properties": {"a": {"$ref": "#/$defs/s", "maxLength": 2}}},
     "/properties/a/maxLength", "maxLength"),
    ({"$schema": DRAFT_07, "prefixItems": [{}]}, "/prefixItems", "prefixItems"),
    ({"prefixItems": [{"type": "integer"}], "additionalItems": {"type": "string"}}, "/additionalItems", None),
    ({"dependencies": {"a": ["b"]}}, "/dependencies", "dependencies"),
    ({"$schema": DRAFT_07, "items": {}, "additionalItems": False}, "/additionalItems", None),
    ({"minContains": 2}, "/minContains", "minContains"),
    ({"then": {"type": "string"}}, "/then", "then"),
    ({"properties": {"a": {"else": False}}}, "/properties/a/else", "else"),
    ({"type": "string", "format": "postal-code"}, "/format", "format"),
    ({"type": "string", "format": "regex"}, "/format", "format"),
    ({"properties": {"g": {"pattern": "^hi\\!$"}}}, "/properties/g/pattern", "pattern"),
    ({"pattern": "(?=a)a"}, "/pattern", "pattern"),
    ({"patternProperties": {"\\d(": {}}}, "/patternProperties/\\d(", "patternProperties"),
    ({"type": "array", "uniqueItems": True}, "/uniqueItems", "uniqueItems"),
    ({"type": "number", "multipleOf": 0.01}, "/multipleOf", "multipleOf"),
    ({"type": "integer", "multipleOf": 1_000_003}, "/multipleOf", "multipleOf"),
    ({"not": {"multipleOf": 3}}, "/not", "not"),
    ({"not": {"uniqueItems": True}}, "/not", "not"),
    ({"oneOf": [{"multipleOf": 3}, {"multipleOf": 5}]}, "/oneOf", "oneOf"),
    ({"const": 9223372036854775808}, "/const", "const"),
    ({"enum": [1, [18446744073709551615]]}, "/enum/1/0", "enum"),
    ({"pattern": "[ab]*a[ab]{20}"}, "/pattern", "pattern"),
    ({"pattern": "[ab]*a[ab]{20}", "maxLength": 64}, "/pattern", "pattern"),
    ({"pattern": "a+b+", "maxLength": 9000}, "/pattern", "pattern"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "pointer", "keyword"), UNSUPPORTED)
def test_what_cannot_be_enforced_is_unsupported(schema, pointer, keyword):
    check(schema, pointer, UnsupportedSchema, keyword)


UNSATISFIABLE = [
    False,
    {"not": {}},
    {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
    {"type": "string", "enum": [1, None]},
    {"type": "string", "minLength": 3, "maxLength": 2},
    {"allOf": [{"type": "string"}, {"type": "integer"}]},
    {"type": "object", "properties": {"a": False}, "required": ["a"]},
    {"type": "object", "required": ["a"], "additionalProperties": False},
    {"type": "array", "prefixItems": [{"type": "integer"}, False], "minItems": 2},
    {"type": "array", "items": False, "minItems": 1},
    {"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]},
    {"type": "object", "properties": {"a": {}}, "additionalProperties": False, "minProperties": 2},
    {"type": "string", "pattern": "^a{3}$", "maxLength": 2},
    {"enum": ["a", "b"], "not": {"enum": ["b", "a"]}},
    {"oneOf": [{"type": "string"}, {"type": "string"}]},
    {"type": "boolean", "minimum": 3, "const": 1},
]


UNWRITABLE = [
    '{"type":"number","exclusiveMinimum":1,"exclusiveMaximum":1.0000000000000002}',
    '{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":5e-324}',
    '{"type":"number","exclusiveMinimum":1.7976931348623157e308}',
    '{"type":"number","minimum":9223372036854775808,"maximum":9223372036854775808}',
    '{"type":"integer","minimum":1e22}',
]


@pytest.mark.parametrize("bounds", UNWRITABLE)
def test_numbers_that_exist_and_cannot_be_written_are_unsupported(bounds):
    error = refusal(bounds)
    assert isinstance(error, UnsupportedSchema), error
    nested = refusal(f'{{"type":"object","properties":{{"a":{bounds}}},"required":["a"]}}')
    assert (type(nested), str(nested.location)) == (UnsupportedSchema, "/properties/a")


@pytest.mark.parametrize("schema", UNSATISFIABLE)
def test_what_nothing_satisfies_is_unsatisfiable(schema):
    error = refusal(json.dumps(schema))
    assert isinstance(error, UnsatisfiableConstraint)
    assert isinstance(error.location, JsonPointer)
    assert error.code == "unsatisfiable_json_schema"


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (
            {
                "properties": {"x": {"type": "string", "enum": [1]}},
                "required": ["x"],
                "type": "object",
            },
            "/properties/x",
        ),
        ({"type": "array", "minItems": 2, "prefixItems": [{}, {"not": {}}]}, "/prefixItems/1"),
        (
            {
                "type": "array",
                "minItems": 1,
                "items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/e"}},
                "$defs": {"e": {"type": "integer", "minimum": 2, "maximum": 1}},
            },
            "/items/items",
        ),
    ],
)
def test_an_empty_language_names_the_place_that_is_empty(schema, pointer):
    check(schema, pointer, UnsatisfiableConstraint)


def test_a_misspelt_keyword_comes_with_a_suggestion():
    for word, near in [
        ("maxlength", "maxLength"),
        ("requird", "required"),
        ("additonalProperties", "additionalProperties"),
        ("_format", "format"),
        ("pattren", "pattern"),
        ("enums", "enum"),
    ]:
        assert f"did you mean '{near}'" in refusal({word: 1}).fact
    assert "did you mean" not in refusal({"zzz": 1}).fact


def test_unknown_words_are_annotations_only_by_request_and_assertions_never_are():
    annotate = UnknownKeywords.ANNOTATE
    schema = {"type": "string", "zzz": {"type": 1}, "format": "house-number"}
    assert isinstance(refusal(schema), UnsupportedSchema)
    from support.schema_language import compiled

    compiled(schema, annotate)
    for word in ("unevaluatedProperties", "dependencies", "additionalItems", "$dynamicRef"):
        assert refusal({word: False}, annotate).keyword == word
    assert refusal({"format": "regex"}, annotate).keyword == "format"


def test_annotations_never_constrain():
    schema = {
        "type": "integer",
        "title": 5,
        "description": "no < more > than </parameter>",
        "default": 1e300,
        "examples": ["x"],
        "$comment": "c",
        "deprecated": True,
        "readOnly": True,
        "writeOnly": False,
        "contentMediaType": "text/plain",
        "markdownDescription": "*",
        "x-anything": {"$ref": "nowhere"},
        "javaType": "T",
        "propertyOrder": 3,
    }
    assert has_value(schema, 3)
    assert not has_value(schema, "x")
    text = '{"type":"integer","default":0.12345678901234567890123,"examples":[1e999]}'
    assert has_value(text, 3)


def test_keywords_inside_values_are_data():
    value = {"uniqueItems": True, "not": 1, "$ref": "http://x.invalid", "$id": "y"}
    assert has_value({"enum": [value, "uniqueItems"]}, value)
    assert has_value({"const": value}, value)
    assert has_value(
        {"type": "object", "properties": {"not": {}, "$ref": {}}}, {"not": 1, "$ref": 2}
    )
