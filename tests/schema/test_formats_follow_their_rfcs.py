# ruff: noqa: E501
"""Format languages against independent readers: everything they hold reads, and known cases agree."""

import datetime
import ipaddress
import random
import re
import uuid
from urllib.parse import urlsplit

import pytest

from ninfer.text.automata.facts import sample_word
from ninfer.text.schema.formats import SHORT_FORMATS, STRING_FORMATS, format_automaton
from support.schema_language import has_value

LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?")


def is_host(text):
    return len(text) <= 253 and all(
        len(label) <= 63 and LABEL.fullmatch(label) for label in text.split(".")
    )


def is_email(text):
    local, _, host = text.rpartition("@")
    parts = local.split(".")
    return len(local) <= 64 and all(parts) and is_host(host)


def is_uri(text):
    parts = urlsplit(text)
    return re.fullmatch(r"[!-~]*", text) is not None and bool(parts.scheme)


def is_time(text):
    datetime.datetime.fromisoformat(re.sub(r"\.(\d{1,6})\d*", r".\1", f"2000-01-01T{text}"))
    return True


READERS = {
    "date": lambda t: bool(datetime.date.fromisoformat(t)),
    "time": is_time,
    "date-time": lambda t: is_time(t[11:]) and bool(datetime.date.fromisoformat(t[:10])),
    "uuid": lambda t: str(uuid.UUID(t)) == t.lower(),
    "ipv4": lambda t: str(ipaddress.IPv4Address(t)) == t,
    "ipv6": lambda t: bool(ipaddress.IPv6Address(t)),
    "hostname": is_host,
    "email": is_email,
    "uri": is_uri,
    "duration": lambda t: re.fullmatch(r"P(?=.)(\d+[YMWD])*(T(?=.)(\d+[HMS])+)?", t) is not None,
    "json-pointer": lambda t: re.fullmatch(r"(/([^~]|~[01])*)*", t) is not None,
    "relative-json-pointer": lambda t: t.split("/")[0].rstrip("#").isdigit(),
    "uri-reference": lambda t: re.fullmatch(r"[!-~]*", t) is not None and bool(urlsplit(t) or 1),
}


@pytest.mark.parametrize("name", STRING_FORMATS)
def test_every_random_word_is_read_by_an_independent_reader(name):
    source = random.Random(name)
    dfa = format_automaton(name)
    for _ in range(400):
        word = sample_word(dfa, source, 0.2)
        assert READERS[name](word), word


@pytest.mark.parametrize("name", SHORT_FORMATS)
def test_the_short_form_is_the_same_language_for_short_texts(name):
    source = random.Random(name)
    whole, short = format_automaton(name), format_automaton(name, short=True)
    for _ in range(400):
        text = sample_word(short, source, 0.2)[:63]
        exact = whole.accepts(text)
        if all(len(part) <= 30 for part in text.rpartition("@")[2].split(".")) and len(text) < 32:
            assert short.accepts(text) == exact
        assert short.accepts(text) or not exact


CASES = {
    "date": (["2024-02-29", "2000-02-29", "1999-12-31"], ["2023-02-29", "1900-02-29", "2024-13-01", "2024-04-31", "24-01-01", "2024-1-1"]),
    "time": (["23:59:59Z", "00:00:00.123+05:30"], ["24:00:00Z", "12:00:00", "12:60:00Z", "12:00Z"]),
    "date-time": (["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5-08:00"], ["2024-01-01 00:00:00Z", "2024-01-01", "2024-02-30T00:00:00Z"]),
    "duration": (["P1Y2M3DT4H5M6S", "PT1M", "P2W", "P1DT1S"], ["P", "PT", "P1S", "1D", "P1Y1W", "PT1D"]),
    "uuid": (["2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380"], ["2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638"]),
    "ipv4": (["0.0.0.0", "255.255.255.255"], ["256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4.5"]),
    "ipv6": (["::", "::1", "1::", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "fe80::1:2"], ["1", ":::", "1::2::3", "12345::", "1:2:3:4:5:6:7:8:9", "fe80::1%eth0"]),
    "hostname": (["a", "a-b.example", "x" * 63], ["-a", "a-", "a..b", "", "x" * 64, "a_b"]),
    "email": (["a@b", "joe.bloggs@example.com", "te~st@example.com"], ["a", "@b", "a@", ".a@b", "a..b@c", "a b@c"]),
    "uri": (["http://a.example/p?q#f", "urn:x:y", "mailto:a@b.c", "ldap://[2001:db8::7]/c=GB?o"], ["/relative", "a b:c", "//a", "http://a b", "bar,baz:x"]),
    "uri-reference": (["", "/a", "a/b", "#f", "//h/x", "http://a"], ["\\\\a", "a b", "%zz"]),
    "json-pointer": (["", "/a~0b/~1", "/"], ["a", "/~", "/~2", "#/a"]),
    "relative-json-pointer": (["1", "0/a/b", "2#"], ["/a", "-1/a", "01/a", "0##"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_known_texts_agree(name):
    inside, outside = CASES[name]
    schema = {"type": "string", "format": name}
    assert [text for text in inside if not has_value(schema, text)] == []
    assert [text for text in outside if has_value(schema, text)] == []


@pytest.mark.parametrize("high", [6, 20, 63, 64, 200, 254, 400])
def test_a_format_and_a_length_hold_together(high):
    schema = {"type": "string", "format": "email", "maxLength": high}
    short = "a@" + "b" * min(high - 2, 60)
    assert has_value(schema, short)
    assert not has_value(schema, "a" * (high - 1) + "@b")
    assert not has_value({**schema, "minLength": 4}, "a@b")
