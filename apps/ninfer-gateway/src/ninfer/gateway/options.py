"""Fixed choices of one server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What the gateway adds to the engine's own options.

    Units: tokens, bytes, seconds. ``api_key`` None serves everybody; ``port`` 0 takes a free one.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    model_id: str = "ninfer"
    api_key: str | None = None
    cors_origin: str | None = None
    default_max_tokens: int = 8192
    max_body_bytes: int = 384 << 20
    stored_responses: int = 1024
    stored_bytes: int = 256 << 20
    silence_seconds: float = 5.0
    shutdown_seconds: float = 10.0

    def public_facts(self) -> dict[str, object]:
        """Return what a log may say; the key only as whether there is one."""
        return {
            "model_id": self.model_id,
            "host": self.host,
            "port": self.port,
            "has_api_key": self.api_key is not None,
            "default_max_tokens": self.default_max_tokens,
        }
