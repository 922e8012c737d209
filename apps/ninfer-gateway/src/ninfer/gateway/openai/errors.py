"""OpenAI error bodies."""

from __future__ import annotations

from ninfer.gateway.failure import Failure

_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}


def error_type(status: int) -> str:
    """Return the ``type`` of an error status."""
    if status == 429:
        return "rate_limit_error"
    return "api_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")


def error_record(failure: Failure) -> dict[str, object]:
    """Return the body of a failure."""
    return {
        "error": {
            "message": failure.message,
            "type": error_type(failure.status),
            "param": failure.param,
            "code": failure.code,
        }
    }
