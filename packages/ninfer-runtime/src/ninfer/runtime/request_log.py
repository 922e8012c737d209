"""The request log's face: what happened to requests, never what they said.

Every started request has exactly one terminal event. Source: reference contract section 5.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ninfer.contract import GenerationResult, NInferError, SchedulingEvent
from ninfer.runtime.request import EngineRequest


class Throughput(NamedTuple):
    """Tokens of a period of work, and who was there at its end."""

    seconds: float
    prefill_tokens: int
    generation_tokens: int
    requests_running: int
    requests_waiting: int
    requests_paused: int


class RequestLog(Protocol):
    """Receives events on the worker's or a submitter's thread and must not block either."""

    def start(self, request: EngineRequest) -> None:
        """Note that a request entered the queue."""
        ...

    def rejected(self, error: NInferError) -> None:
        """Note a request that never reached the queue."""
        ...

    def scheduling(self, request: EngineRequest, event: SchedulingEvent) -> None:
        """Note a step of pause and resume."""
        ...

    def done(self, request: EngineRequest, result: GenerationResult) -> None:
        """Note the end of a request with a result."""
        ...

    def error(self, request: EngineRequest, error: NInferError) -> None:
        """Note the end of a request with an error."""
        ...

    def throughput(self, period: Throughput) -> None:
        """Note what a period of work achieved."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class SilentLog:
    """Keeps nothing."""

    def start(self, request: EngineRequest) -> None:
        """Keep nothing."""

    def rejected(self, error: NInferError) -> None:
        """Keep nothing."""

    def scheduling(self, request: EngineRequest, event: SchedulingEvent) -> None:
        """Keep nothing."""

    def done(self, request: EngineRequest, result: GenerationResult) -> None:
        """Keep nothing."""

    def error(self, request: EngineRequest, error: NInferError) -> None:
        """Keep nothing."""

    def throughput(self, period: Throughput) -> None:
        """Keep nothing."""

    def close(self) -> None:
        """Do nothing."""
