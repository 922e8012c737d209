# ruff: noqa: E501
"""Tables of schemas: which compact texts are in the language, and which are not."""

import json
import random
from math import inf, isfinite, nextafter
from struct import unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer.text.emitter import emit
from ninfer.text.schema.compilation import schema_grammar
from support.schema_language import (
    accepts,
    compiled,
    compiler,
    has_value,
    matcher_at,
    next_bytes,
    source_of,
)
from support.schema_walks import random_word, validator

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_04 = "http://json-schema.org/draft-04/schema#"

# schema, texts in the language, texts outside
TABLE = {
    "empty schema": ({}, ["null", "1e9", '{"a":[1,{}]}', '"x"'], ["", "nul", "[1,]", "{,}", "1 "]),
    "true": (True, ["false"], ["x"]),
    "types": ({"type": ["null", "string"]}, ["null", '"a"'], ["1", "true", "[]"]),
    "boolean": ({"type": "boolean"}, ["true", "false"], ["null", "tru", "1"]),
    # objects
    "closed object": (
        {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"],
         "type": "object", "additionalProperties": False},
        ['{"a":1}', '{"a":1,"b":"x"}'],
        ["{}", '{"b":"x"}', '{"b":"x","a":1}', '{"a":1,"c":1}', '{"a":1,"a":2}', '{"a":1,}', '{"a": 1}'],
    ),
    "missing additionalProperties means open": (
        {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        ['{"n":1}', '{"n":1,"extra":"NW"}', '{"n":1,"nn":[],"m":{}}'],
        ['{"extra":1}', '{"n":"x"}', '{"n":1,"n":2}', '{"n":1,"\\u006e":2}', '{"n":1,"extra"}'],
    ),
    "additionalProperties schema": (
        {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
        ["{}", '{"x":1}', '{"a":"s","x":1}'],
        ['{"x":"s"}', '{"x":1,"a":"s"}'],
    ),
    "all optional": (
        {"type": "object", "properties": {k: {"const": k} for k in "abc"}, "additionalProperties": False},
        ["{}", '{"b":"b"}', '{"a":"a","c":"c"}', '{"a":"a","b":"b","c":"c"}'],
        ['{"c":"c","a":"a"}', '{,"a":"a"}', '{"a":"a",}', '{"a":"b"}'],
    ),
    "optional before required": (
        {"type": "object", "properties": {k: {"const": 1} for k in "abc"}, "required": ["b"],
         "additionalProperties": False},
        ['{"b":1}', '{"a":1,"b":1}', '{"b":1,"c":1}', '{"a":1,"b":1,"c":1}'],
        ["{}", '{"a":1}', '{"a":1,"c":1}'],
    ),
    "required that nothing declares": (
        {"type": "object", "required": ["a", "b"]},
        ['{"a":1,"b":2}', '{"b":1,"a":2}', '{"z":1,"b":1,"y":0,"a":2,"x":1}'],
        ["{}", '{"a":1}', '{"b":1,"b":1}', '{"a":1,"b":2,"a":3}'],
    ),
    "false property": (
        {"type": "object", "properties": {"a": False, "b": {}}},
        ["{}", '{"b":1}', '{"aa":1}'], ['{"a":1}', '{"b":1,"a":1}'],
    ),
    "names that need escapes": (
        {"type": "object", "properties": {'q"\\': {"const": 1}, "k\u0001z": {"const": 2}, "é\u2028😀": {"const": 3}},
         "required": ["k\u0001z"]},
        ['{"k\\u0001z":2}', '{"q\\"\\\\":1,"k\\u0001z":2,"é\u2028😀":3,"x":0}'],
        ['{"k\u0001z":2}', '{"k\\u0001z":2,"k\\u0001z":2}', '{"k\\u0001z":2,"q\\"\\\\":1}'],
    ),
    "minProperties 1": (
        {"type": "object", "minProperties": 1, "properties": {"a": {}}},
        ['{"a":1}', '{"x":1}', '{"a":1,"x":1,"y":1}'], ["{}"],
    ),
    "minProperties counts repeated names once": (
        {"type": "object", "minProperties": 2, "properties": {"a": {}, "b": {}}},
        ['{"a":1,"b":1}', '{"a":1,"x":1}'], ["{}", '{"a":1}', '{"x":1,"x":1}'],
    ),
    "maxProperties": (
        {"type": "object", "maxProperties": 2, "properties": {"a": {}}},
        ["{}", '{"a":1}', '{"a":1,"x":1}', '{"x":1,"y":1}'], ['{"a":1,"x":1,"y":1}'],
    ),
    "patternProperties": (
        {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"],
         "additionalProperties": False, "patternProperties": {"^score$": {"minimum": 0}, "^x_": {"type": "string"}}},
        ['{"score":1}', '{"score":1,"x_a":"s"}'], ['{"score":-1}', '{"score":1,"x_a":1}', '{"score":1,"y":1}'],
    ),
    "patterns that overlap": (
        {"type": "object", "patternProperties": {"a": {"minimum": 5}, "b": {"maximum": 7}}, "additionalProperties": False},
        ['{"a":9}', '{"b":1}', '{"ab":6}', '{"a":"s"}'], ['{"a":1}', '{"b":9}', '{"ab":9}', '{"ba":1}', '{"c":6}'],
    ),
    "propertyNames": (
        {"type": "object", "propertyNames": {"pattern": "^k"}, "additionalProperties": {"type": "integer"}},
        ["{}", '{"k1":1,"k":2}'], ['{"z":1}', '{"k1":"s"}'],
    ),
    "propertyNames against declared names": (
        {"type": "object", "propertyNames": {"maxLength": 2}, "properties": {"abc": {}, "ab": {}}},
        ["{}", '{"ab":1,"x":2}'], ['{"abc":1}', '{"xyz":1}'],
    ),
    "dependentRequired": (
        {"type": "object", "properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}},
        ["{}", '{"b":1}', '{"a":1,"b":1}'], ['{"a":1}', '{"a":1,"c":1}'],
    ),
    "dependencies": (
        {"$schema": DRAFT_07, "type": "object", "properties": {"a": {}, "b": {}, "c": {}},
         "dependencies": {"a": ["b"], "c": {"properties": {"b": {"type": "integer"}}}}, "additionalProperties": False},
        ["{}", '{"b":"s"}', '{"a":1,"b":1}', '{"b":1,"c":1}'], ['{"a":1}', '{"b":"s","c":1}'],
    ),
    # arrays
    "items": ({"type": "array", "items": {"type": "integer"}}, ["[]", "[1,2,3]"], ["[1,]", "[,1]", '["a"]', "[1 ,2]"]),
    "items with bounds": (
        {"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 4},
        ["[1,1]", "[1,1,1]", "[1,1,1,1]"], ["[]", "[1]", "[1,1,1,1,1]"],
    ),
    "prefix and false position": (
        {"type": "array", "prefixItems": [{"type": "integer"}, False], "items": {"type": "string"}},
        ["[]", "[1]"], ['[1,"a"]', "[1,2]", '["a"]'],
    ),
    "prefix and bounds": (
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 1, "maxItems": 2},
        ["[1]", '[1,"a"]'], ["[]", '[1,"a",2]', "[1,2]"],
    ),
    "prefix and items": (
        {"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 3},
        ["[1,2,2]", "[1,2,2,2]"], ["[1,2]", "[2,2,2]", "[1,2,1]"],
    ),
    "additionalItems of draft-07": (
        {"$schema": DRAFT_07, "type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "string"}},
        ["[]", "[1]", '[1,"x"]'], ["[1,2]", '["x"]'],
    ),
    "uniqueItems over few values": (
        {"type": "array", "items": {"enum": ["a", "b", 3]}, "uniqueItems": True, "minItems": 2},
        ['["a","b"]', '["b","a"]', '[3,"a","b"]'], ['["a","a"]', '["a"]', "[]", '["a","b",3,"a"]'],
    ),
    "uniqueItems over booleans by position": (
        {"type": "array", "prefixItems": [{"const": True}], "items": {"type": "boolean"}, "uniqueItems": True},
        ["[]", "[true]", "[true,false]"], ["[true,true]", "[false]", "[true,false,true]"],
    ),
    "uniqueItems of one item": (
        {"type": "array", "uniqueItems": True, "maxItems": 1}, ["[]", '["x"]'], ['["x","y"]'],
    ),
    "contains": (
        {"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 5}},
        ["[5]", "[1,7,2]"], ["[]", "[1]", '["a",7]'],
    ),
    "contains with counts": (
        {"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 1}, "minContains": 2, "maxContains": 3},
        ["[1,1]", "[1,2,1]", "[2,1,1,2,1]"], ["[1]", "[1,2]", "[1,1,1,1]", "[]"],
    ),
    # strings
    "length": ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"é😀"', '"\\n\\""', '"abc"', '"a\\u0001c"'],
               ['""', '"a"', '"abcd"', '"\n\n"', '"ab', '"\\u0041b"']),
    "length one": ({"type": "string", "minLength": 1}, ['"a"', '"\\\\"', '"' + "x" * 99 + '"'], ['""', '"\\"']),
    "long minimum": ({"type": "string", "minLength": 40}, ['"' + "x" * 40 + '"', '"' + "x" * 50 + '\\n"'], ['"' + "x" * 39 + '"']),
    "zero length": ({"type": "string", "maxLength": 0}, ['""'], ['"a"', '"\\n"']),
    "escapes": ({"type": "string"}, ['"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00"'],
                ["\"\\'\"", '"\t"', '"\\x41"', '"\\ud800"', '"\\udc00"', '"\\ud800\\u0041"', '"\x00"', '"\x1f"']),
    "pattern searches": ({"type": "string", "pattern": "b+"}, ['"abc"', '"b"', '"\\nb"'], ['""', '"ac"']),
    "pattern with anchors in one branch": ({"type": "string", "pattern": "^a|b$"}, ['"ax"', '"xb"'], ['"xa"', '"bx"']),
    "pattern and length": (
        {"type": "array", "minItems": 1, "maxItems": 1, "items": {"type": "string", "pattern": "^[\\x20-\\x7E]+$", "maxLength": 4}},
        ['["abcd"]', '["\\"\\\\"]'], ['["abcde"]', '[""]', '["é"]'],
    ),
    "two patterns": (
        {"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "^.{2}$"}, {"pattern": "^[^c]*$"}]},
        ['"ab"', '"ba"'], ['"a"', '"abb"', '"ac"', '"bb"'],
    ),
    "pattern of special characters": ({"type": "string", "pattern": '^[\\\\"\\n]$'}, ['"\\\\"', '"\\""', '"\\n"'], ['"\\"', '"""', '"n"', '"\n"']),
    "dot is no line end": ({"type": "string", "pattern": "^.$"}, ['"a"', '"😀"', '"\\t"'], ['"\\n"', '"\\r"', '"\u2028"', '"ab"']),
    "format and length": (
        {"type": "string", "format": "email", "maxLength": 10}, ['"a@b.c"', '"abcdef@g.h"'], ['"abcdefghijk@c.de"', '"abcdefg@h.i"', '"a"'],
    ),
    # numbers
    "integer": ({"type": "integer"}, ["0", "-1", "9223372036854775807", "-9223372036854775808"],
                ["9223372036854775808", "-9223372036854775809", "01", "1.0", "1e2", "-", "+1"]),
    "fractional bounds of integers": ({"type": "integer", "minimum": 1.5, "maximum": 3.5}, ["2", "3"], ["1", "4", "2.0"]),
    "huge bound": ({"type": "integer", "minimum": 9223372036854775800, "maximum": 1e30}, ["9223372036854775807"], ["9223372036854775799"]),
    "exclusive integers": ({"type": "integer", "exclusiveMinimum": -3, "exclusiveMaximum": 0}, ["-2", "-1"], ["-3", "0"]),
    "draft-04 exclusive": ({"$schema": DRAFT_04, "type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 3}, ["2", "3"], ["1", "4"]),
    "any number": (
        {"type": "number"},
        ["0", "-0", "-0.0", "1.50", "9223372036854775807", "-9223372036854775808", "1E+07", "1e-07", "-2.5e307", "9.9999999999999999e307",
         "9999999999999999999.99999999999999999e289", "12345678901234567e-289"],
        ["1e308", "10e290", "1e400", "12345678901234567890", "0.123456789012345678", "01", "+1", ".5", "1.", "1e", "1e+", "-", "", "1e0001", "Infinity", "NaN"],
    ),
    "no negative number": ({"type": "number", "minimum": 0}, ["0", "0.0", "2e-3", "12.25", "9223372036854775807"], ["-0", "-1", "-0.5", "1e308", "-"]),
    "one number": ({"type": "number", "minimum": 0.1, "maximum": 0.1}, ["0.1", "0.10", "1e-1", "1.0E-1"], ["0.11", "0.09", "0", "1"]),
    "unit interval": ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, ["1", "0.5", "1e-9", "0.3333333333333333", "5e-1", "1.0"],
                      ["0", "1.0000001", "1.1", "-0.5", "2", "1e1", "0.0"]),
    "tiny interval": ({"type": "number", "minimum": 1e-10, "maximum": 1e-8}, ["1e-9", "1e-10", "1e-08"], ["0", "1e-7", "1e-11", ""]),
    "negative": ({"type": "number", "maximum": -2.5}, ["-2.5", "-3", "-1e5"], ["-2.4", "0", "2.5", "-2"]),
    "multiples": ({"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 50}, ["0", "7", "49"], ["1", "50", "56", "-7"]),
    "multiples of a fraction": ({"type": "integer", "multipleOf": 1.5}, ["0", "3", "-6"], ["1", "2", "4"]),
    "int32": ({"type": "integer", "format": "int32"}, ["2147483647", "-2147483648"], ["2147483648"]),
    # finite values
    "const": ({"const": {"a": [1, None, "é\n"], "b": {}}}, ['{"a":[1,null,"é\\n"],"b":{}}'], ['{"b":{},"a":[1,null,"é\\n"]}', '{"a":[1,null,"é\\n"]}']),
    "const with blanks": ({"const": "\n" + " " * 31}, ['"\\n' + " " * 31 + '"'], ['"\\n"', '"\\n' + " " * 30 + '"']),
    "enum is filtered": ({"enum": ["a", "bbb", 1, 2.5, None, [1], {"k": 1}], "type": ["string", "number", "object"], "maxLength": 2, "minimum": 2},
                         ['"a"', "2.5", '{"k":1}'], ['"bbb"', "1", "null", "[1]"]),
    "enum of objects by required": ({"enum": [{"k": 1}, {"k": "x", "l": 2}], "properties": {"k": {"type": "string"}}}, ['{"k":"x","l":2}'], ['{"k":1}']),
    "number spelled otherwise": ({"enum": [1.0, 100, 1e2]}, ["1", "100"], ["1.0", "1e2"]),
    # combinations
    "anyOf beside assertions": (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "additionalProperties": False,
         "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ['{"a":1}', '{"b":1}', '{"a":1,"b":1}'], ["{}", '{"a":"s"}'],
    ),
    "allOf closes what another branch opens": (
        {"allOf": [{"type": "object", "properties": {"a": {}}, "additionalProperties": False}, {"properties": {"b": {}}}]},
        ["{}", '{"a":1}'], ['{"b":1}'],
    ),
    "allOf of ranges": ({"allOf": [{"type": "integer"}, {"minimum": 3}, {"maximum": 5}]}, ["3", "5"], ["2", "6", '"a"']),
    "allOf of arrays": (
        {"allOf": [{"type": "array", "prefixItems": [{"minimum": 3}], "items": {"type": "integer"}}, {"items": {"maximum": 5}, "minItems": 1}]},
        ["[3]", "[4,0]"], ["[2]", "[6]", "[3,6]", "[]"],
    ),
    "oneOf by type": ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, ["1", '"a"'], ["1.5", "null"]),
    "oneOf that overlaps": ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]}, ["1", "-5", "2.5"], ["2", "3", "1.5"]),
    "oneOf by discriminator": (
        {"oneOf": [{"type": "object", "properties": {"k": {"const": k}, "v": {"type": t}}, "required": ["k", "v"], "additionalProperties": False}
                   for k, t in (("i", "integer"), ("s", "string"))]},
        ['{"k":"i","v":1}', '{"k":"s","v":"x"}'], ['{"k":"i","v":"x"}', '{"k":"z","v":1}'],
    ),
    "oneOf of optional members": (
        {"type": "object", "oneOf": [{"properties": {k: {"type": "string"}}, "additionalProperties": False} for k in "ab"]},
        ['{"a":"x"}', '{"b":"x"}'], ["{}", '{"a":"x","b":"x"}', '{"a":1}'],
    ),
    "not": ({"not": {"type": ["string", "array"]}}, ["1", "{}", "null"], ['"a"', "[]"]),
    "not required": ({"type": "object", "properties": {"a": {}, "b": {}}, "not": {"required": ["a", "b"]}}, ["{}", '{"a":1}', '{"b":1,"c":2}'], ['{"a":1,"b":1}']),
    "not a value": ({"type": "string", "not": {"enum": ["", "no"]}}, ['"n"', '"non"', '"yes"'], ['""', '"no"']),
    "not a pattern": ({"type": "string", "not": {"pattern": "^x"}}, ['"ax"', '""'], ['"x"', '"xa"']),
    "not items": ({"type": "array", "not": {"items": {"type": "integer"}}}, ['["a"]', '[1,"a"]'], ["[]", "[1]"]),
    "if then else": (
        {"type": "object", "properties": {"k": {"enum": ["a", "b"]}, "v": {}}, "required": ["k", "v"], "additionalProperties": False,
         "if": {"properties": {"k": {"const": "a"}}}, "then": {"properties": {"v": {"type": "integer"}}}, "else": {"properties": {"v": {"type": "string"}}}},
        ['{"k":"a","v":1}', '{"k":"b","v":"s"}'], ['{"k":"a","v":"s"}', '{"k":"b","v":1}'],
    ),
    # references
    "siblings of a reference": ({"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s", "maxLength": 2}, ['"ab"'], ['"abc"', "1"]),
    "recursion": (
        {"type": "object", "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#"}}}, "required": ["v"],
         "additionalProperties": False},
        ['{"v":1}', '{"v":1,"kids":[{"v":2,"kids":[{"v":3,"kids":[{"v":4,"kids":[{"v":5,"kids":[{"v":6}]}]}]}]}]}'],
        ['{"v":1,"kids":[{"x":2}]}', '{"v":1,"kids":[{}]}'],
    ),
    "escaped references": (
        {"$defs": {"a b/c~d": {"type": "array", "items": {"$ref": "#/$defs/e%25"}}, "e%": {"anyOf": [{"const": 1}, {"$ref": "#/$defs/a%20b~1c~0d"}]}},
         "$ref": "#/$defs/a%20b~1c~0d"},
        ["[]", "[1,[1,[[]]]]"], ["1", "[2]"],
    ),
    "anchor and nested identity": (
        {"$id": "http://x.invalid/root", "$defs": {"i": {"$id": "inner", "$anchor": "here", "type": "integer"}, "s": {"$anchor": "text", "type": "string"}},
         "prefixItems": [{"$ref": "inner"}, {"$ref": "#text"}, {"$ref": "inner#here"}, {"$ref": "http://x.invalid/root#/$defs/s"}], "type": "array"},
        ['[1,"a",2,"b"]'], ['["a"]', "[1,2]", '[1,"a","b"]', '[1,"a",2,3]'],
    ),
    "a property called $ref": ({"type": "object", "properties": {"$ref": {"type": "integer"}}, "additionalProperties": False}, ['{"$ref":1}'], ['{"$ref":"#"}']),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_the_language_is_what_the_table_says(name):
    schema, inside, outside = TABLE[name]
    assert [text for text in inside if not accepts(schema, text)] == []
    assert [text for text in outside if accepts(schema, text)] == []
    for text in inside:
        json.loads(text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_finite_number_has_a_spelling(value):
    is_told = not value or 1e-307 <= abs(value) < 1e308
    for schema in ({"type": "number"}, {"type": "number", "minimum": 0}):
        is_valid = value > 0 or str(value) == "0.0" or "minimum" not in schema
        assert accepts(schema, repr(value)) == (is_told and is_valid)


def _finite_numbers() -> list[float]:
    source = random.Random(11)
    drawn = (unpack("<d", source.randbytes(8))[0] for _ in range(12))
    large = (float(source.randrange(1 << 53, 1 << 63)) for _ in range(6))
    return [5e-324, -2.2250738585072014e-308, 1e-308, 1e22, 1.7976931348623157e308, *drawn, *large]


@pytest.mark.parametrize("value", _finite_numbers())
def test_any_finite_number_is_a_bound_that_reaches_itself(value):
    text = repr(value)
    assert accepts(f'{{"type":"number","minimum":{text},"maximum":{text}}}', text)
    assert accepts(f'{{"type":"number","minimum":{text}}}', text)
    assert accepts(f'{{"type":"number","maximum":{text}}}', text)
    if not value.is_integer():
        assert accepts(f'{{"const":{text}}}', text)


@pytest.mark.parametrize(
    ("bounds", "outside"),
    [
        # The binary64 nearest to the bound lies on its other side.
        ('"minimum":9007199254740993', ["9007199254740993.0", "9.007199254740993e15"]),
        ('"maximum":12345678901234567', ["12345678901234567.0", "1.2345678901234567E16"]),
        ('"minimum":6866948347181718694', ["6.866948347181719e18"]),
        ('"maximum":-3440099346916538887', []),
        ('"minimum":-3440099346916538887', []),
        # What stands there are not the digits of the binary64 that it reads as.
        ('"exclusiveMaximum":-8.758490534858012e17', ["-875849053485801216"]),
        ('"exclusiveMinimum":4.388678563828586e17', ["438867856382858624"]),
    ],
)
def test_large_bounds_hold_for_what_is_written_and_for_what_it_reads_as(bounds, outside):
    schema = f'{{"type":"number",{bounds}}}'
    assert [text for text in outside if accepts(schema, text)] == []
    judge = validator(json.loads(schema))
    (bound,) = (value for word, value in json.loads(schema).items() if word != "type")
    near = float(bound)
    for _ in range(4):
        near = nextafter(near, -inf)
    for _ in range(8):
        near = nextafter(near, inf)
        whole = int(near)
        texts = [repr(near), f"{near:.16e}", f"{near:.15e}", f"{near:.1f}"]
        texts += [str(whole + offset) for offset in (-300, -2, -1, 0, 1, 2, 300)]
        for text in texts:
            assert judge.is_valid(json.loads(text)) or not accepts(schema, text), text
    assert accepts(schema, "1e-300") == judge.is_valid(1e-300)


@pytest.mark.parametrize(
    "bound", ["1.4728317040683098e18", "3.0737939130441943e18", "-9007199254740993"]
)
@pytest.mark.parametrize("word", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"])
def test_a_large_bound_and_its_negation_part_the_whole_numbers(word, bound):
    inside = f'{{"type":"integer","{word}":{bound}}}'
    outside = f'{{"type":"integer","not":{{"{word}":{bound}}}}}'
    judge = validator(json.loads(inside))
    for offset in range(-300, 300, 4):
        whole = int(float(bound)) + offset
        assert accepts(inside, str(whole)) == judge.is_valid(whole)
        assert accepts(outside, str(whole)) != judge.is_valid(whole)


def test_exact_bounds_of_many_digits_keep_their_own_number():
    for digits in ("9007199254740993", "-12345678901234567", "9223372036854775807"):
        assert accepts(f'{{"type":"number","minimum":{digits},"maximum":{digits}}}', digits)
        assert accepts(f'{{"type":"integer","minimum":{digits},"maximum":{digits}}}', digits)


@pytest.mark.parametrize("schema", [{"type": "number"}, {"type": ["number", "null"], "minimum": 0}])
def test_every_spelling_of_a_number_reads_as_finite(schema):
    source = random.Random(4)
    for _ in range(300):
        word = random_word(compiler().matcher(compiled(schema)), source, limit=60)
        if word is not None and word != b"null":
            assert isfinite(float(word))
            assert float(word) >= 0 or "minimum" not in schema


def test_a_declared_name_cannot_be_finished_late_and_is_no_trap():
    schema = {
        "type": "object",
        "properties": {"first": {"type": "integer"}, "second": {"type": "integer"}},
        "required": ["first"],
        "additionalProperties": True,
    }
    prefix = '{"first":1,"zz":0,"second'
    following = next_bytes(schema, prefix)
    assert b'"'[0] not in following
    assert set(b"abcdefghijklmnopqrstuvwxyz_0123456789 ") <= set(following)
    assert accepts(schema, '{"first":1,"zz":0,"seconds":2}')
    assert accepts(schema, '{"first":1,"zz":0,"secon":2}')
    for late in ("second", "first"):
        assert not accepts(schema, f'{{"first":1,"zz":0,"{late}":2}}')
        assert not accepts(schema, f'{{"first":1,"zz":0,"\\u{ord(late[0]):04x}{late[1:]}":2}}')


def test_key_order_is_the_order_of_the_source():
    first = '{"type":"object","properties":{"reasoning":{"type":"string"},"answer":{"type":"string"}},"required":["answer","reasoning"],"additionalProperties":false}'
    assert accepts(first, '{"reasoning":"r","answer":"a"}')
    assert not accepts(first, '{"answer":"a","reasoning":"r"}')
    swapped = first.replace(
        '"reasoning":{"type":"string"},"answer":{"type":"string"}',
        '"answer":{"type":"string"},"reasoning":{"type":"string"}',
    )
    assert accepts(swapped, '{"answer":"a","reasoning":"r"}')


def test_no_blank_is_legal_outside_strings():
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}, "required": ["a"]}  # fmt: skip
    text = '{"a":[1,2],"b":{"c":null}}'
    for end in range(len(text)):
        if text[:end].count('"') % 2 == 0:
            assert not set(next_bytes(schema, text[:end])) & set(b" \t\r\n")


@pytest.mark.parametrize("high", [1, 5, 8, 9, 63, 64, 255, 1024])
def test_bounded_strings_count_characters_and_never_pass_the_bound(high):
    schema = {"type": "string", "maxLength": high}
    assert has_value(schema, "😀" * high)
    assert not has_value(schema, "😀" * (high + 1))
    assert has_value(schema, "\n" + "x" * (high - 1 - high // 8))
    assert not has_value(schema, "\n" + "x" * high)
    assert not has_value(schema, "x" * high + "\n")
    for lines in range(1, 40):
        text = "ab\n" * lines
        if len(text) > high:
            assert not has_value(schema, text)
        assert matcher_at(schema, '"' + "\\n" * high) is not None or high > 8


def test_the_only_escapes_are_those_of_json():
    schema = {"type": "string", "minLength": 1}
    assert set(next_bytes(schema, '"\\')) == set(b'"\\bfnrtu')
    assert set(next_bytes({"type": "string"}, '"\\')) == set(b'"\\/bfnrtu')


@pytest.mark.parametrize("pattern", ["", ".*", "[a-z]*", "a|", "^", "$", "(b?)*"])
def test_a_pattern_that_every_name_matches_says_nothing(pattern):
    said = {"patternProperties": {pattern: {"type": "null"}}, "additionalProperties": False}
    same = {"additionalProperties": {"type": "null"}}
    texts = [emit(schema_grammar(source_of(schema))) for schema in (said, same)]
    assert texts[0] == texts[1]
