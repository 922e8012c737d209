"""JSON source text: order, number spelling, and the place of everything that is refused."""

import pytest

from ninfer.contract import InvalidSchema, JsonPointer, TextPosition, UnsupportedSchema
from ninfer.text.json_source import DEPTH_LIMIT, JsonNumber, read_json, require_exact, write_json


def test_order_and_number_text_survive_reading():
    text = '{"z":1.50,"a":[1e2,-0,"\\u00e9"],"m":{"b":null,"a":true}}'
    assert write_json(read_json(text)) == text.replace("\\u00e9", "é")


def test_equal_numbers_are_equal_whatever_their_spelling():
    assert JsonNumber("1.0") == JsonNumber("1") == JsonNumber("100e-2")
    assert hash(JsonNumber("1.0")) == hash(JsonNumber("1"))
    assert JsonNumber("1.0") != JsonNumber("1.5")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", TextPosition(1, 1)),
        ('{"a":1,}', TextPosition(1, 8)),
        ('{"a":\n  tru}', TextPosition(2, 3)),
        ('{"a": NaN}', TextPosition(1, 7)),
        ('["NaN", -Infinity]', TextPosition(1, 9)),
        ('{"a":01}', TextPosition(1, 7)),
        ('{"a":"\t"}', TextPosition(1, 7)),
        ("{} x", TextPosition(1, 4)),
        ("\ufeff{}", TextPosition(1, 1)),
        ('"\ud800"', TextPosition(1, 2)),
    ],
)
def test_broken_json_is_refused_with_line_and_column(text, place):
    with pytest.raises(InvalidSchema) as caught:
        read_json(text)
    assert caught.value.location == place


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('{"a":1,"a":2}', "/a"),
        ('{"a":[{"b":1},{"c/d":1,"c/d":1}]}', "/a/1/c~1d"),
        ('{"x":{"\\u0061":1,"a":1}}', "/x/a"),
        ('{"a":["\\ud800"]}', "/a/0"),
    ],
)
def test_repeated_keys_and_lone_surrogates_are_refused_at_their_pointer(text, pointer):
    with pytest.raises(InvalidSchema) as caught:
        read_json(text)
    assert str(caught.value.location) == pointer


def test_surrogate_pairs_are_one_character():
    assert read_json('"\\ud83d\\ude00"') == "😀"


def test_depth_is_limited_before_anything_is_read():
    assert read_json("[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT)
    assert read_json('["' + "[" * 10_000 + '"]')
    with pytest.raises(UnsupportedSchema) as caught:
        read_json("[" * 100_000)
    assert caught.value.keyword == "json_depth"
    assert caught.value.location == TextPosition(1, DEPTH_LIMIT + 1)


@pytest.mark.parametrize(
    "text",
    ["0", "-1", "0.1", "1e30", "1E-7", "9007199254740993", "-9223372036854775808", "1.50",
     "18446744073709551615", "0.10000000000000001", "1e-300", "123456789012345678e3"],
)  # fmt: skip
def test_numbers_that_reading_keeps_are_kept(text):
    assert JsonNumber(text).is_rounded is (text == "123456789012345678e3")


@pytest.mark.parametrize(
    "text",
    ["1e400", "0.12345678901234567890123", "123456789012345678901234567890", "1e-400",
     "3.14159265358979323846", "1e999999999", "1e-999999999", "9" * 5000],
)  # fmt: skip
def test_numbers_that_reading_rounds_are_refused_where_they_stand(text):
    with pytest.raises(InvalidSchema) as caught:
        require_exact(read_json('{"a":[0,' + text + "]}"), JsonPointer(("enum",)))
    assert str(caught.value.location) == "/enum/a/1"
