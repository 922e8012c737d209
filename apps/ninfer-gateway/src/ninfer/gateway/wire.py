"""Reads request bodies into typed wire records; an error names the offending field."""

from __future__ import annotations

import codecs
import re
from typing import Any, TypeVar

import msgspec

from ninfer.gateway.failure import WireError

Record = TypeVar("Record")

_PIECE_BYTES = 1 << 20
_PLACE = re.compile(r"(?P<fact>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?", re.DOTALL)
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING_FIELD = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)


def read_body(body: bytes, kind: type[Record]) -> Record:
    """Return the record a request body holds.

    Raises: WireError — the body is not JSON, or a field is missing, unknown or of another type.
    """
    try:
        _require_utf8(body)
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _field_error(str(error)) from None
    except UnicodeDecodeError as error:
        raise WireError(f"the body is not UTF-8: {error.reason}", code="invalid_json") from None
    except msgspec.DecodeError as error:
        raise WireError(f"the body is not JSON: {error}", code="invalid_json") from None
    except RecursionError:
        raise WireError("the body is nested too deeply", code="invalid_json") from None


def _require_utf8(body: bytes) -> None:
    # Fields that are kept as source text, or skipped, are not looked into otherwise. Piece by
    # piece, because a whole body as text may take four times its size.
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(body), _PIECE_BYTES):
        decoder.decode(body[start : start + _PIECE_BYTES])
    decoder.decode(b"", final=True)


def write_body(record: Any) -> bytes:
    """Return the JSON bytes of a reply."""
    return msgspec.json.encode(record)


def raw_text(raw: msgspec.Raw) -> str | None:
    """Return a field's source text, so that order and numbers stay as sent; None where absent."""
    text = bytes(raw).decode("utf-8")
    return None if text in ("", "null") else text


def _field_error(text: str) -> WireError:
    match = _PLACE.fullmatch(text)
    assert match is not None
    fact, path = match["fact"], (match["path"] or "").lstrip(".")
    unknown = _UNKNOWN_FIELD.fullmatch(fact)
    if unknown is not None:
        return WireError(
            "unknown field", param=_join(path, unknown["name"]), code="unknown_parameter"
        )
    missing = _MISSING_FIELD.fullmatch(fact)
    if missing is not None:
        param = _join(path, missing["name"])
        return WireError("required field is missing", param=param, code="missing_field")
    return WireError(fact[:1].lower() + fact[1:], param=path or None, code="invalid_type")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
