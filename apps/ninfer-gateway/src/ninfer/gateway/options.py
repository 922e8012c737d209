"""Fixed choices of one server."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ninfer.gateway.defaults import AnswerDefaults

_LAST_PORT = 65_535
_LEAST = {"max_body_bytes": 1, "stored_responses": 0, "stored_bytes": 0}
_ORIGIN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What the gateway adds to the engine's own options.

    Units: tokens, bytes, seconds. ``api_key`` None serves everybody; ``port`` 0 takes a free one.
    Raises: ValueError — a number is out of range, or a text says nothing or cannot be sent.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    model_id: str = "ninfer"
    api_key: str | None = None
    cors_origin: str | None = None
    answers: AnswerDefaults = AnswerDefaults()
    max_body_bytes: int = 384 << 20
    stored_responses: int = 1024
    stored_bytes: int = 256 << 20
    silence_seconds: float = 5.0
    shutdown_seconds: float = 10.0

    def __post_init__(self) -> None:
        if not 0 <= self.port <= _LAST_PORT:
            raise ValueError(f"port: {self.port} is not in 0..{_LAST_PORT}")
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name}: {getattr(self, name)} is less than {least}")
        for name in ("model_id", "api_key", "cors_origin"):
            # An empty key would let everybody in who was meant to be kept out.
            if getattr(self, name) == "":
                raise ValueError(f"{name}: an empty text")
        if not _is_unicode(self.model_id):
            raise ValueError("model_id: not UTF-8")
        if self.cors_origin is not None and not _ORIGIN.fullmatch(self.cors_origin):
            raise ValueError(f"cors_origin: {self.cors_origin!r} is no origin")

    def public_facts(self) -> dict[str, object]:
        """Return what a log may say; the key only as whether there is one."""
        return {
            "model_id": self.model_id,
            "host": self.host,
            "port": self.port,
            "has_api_key": self.api_key is not None,
            "default_max_tokens": self.answers.output_tokens,
        }


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
