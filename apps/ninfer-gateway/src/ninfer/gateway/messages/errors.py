"""Anthropic error bodies; the field's place stands in the message."""

from __future__ import annotations

from ninfer.gateway.failure import Failure

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_STATUSES = {"server_overloaded": 529, "request_queue_timeout": 504}


def anthropic_status(failure: Failure) -> int:
    """Return the status this protocol uses for a failure."""
    return _STATUSES.get(failure.code or "", failure.status)


def error_record(failure: Failure, request_id: str) -> dict[str, object]:
    """Return the body of a failure."""
    status = anthropic_status(failure)
    fallback = "api_error" if status >= 500 else "invalid_request_error"
    message = failure.message
    if failure.param and failure.param not in message:
        message = f"{failure.param}: {message}"
    return {
        "type": "error",
        "error": {"type": _TYPES.get(status, fallback), "message": message},
        "request_id": request_id,
    }
