"""What start-up prepared for the first requests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class WarmUpStop(Enum):
    """Why a language was left out of a warm-up."""

    SECONDS = "seconds"
    BYTES = "bytes"
    STOPPED = "stopped"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A language that was not warmed, and why."""

    language: str
    reason: WarmUpStop


@dataclass(frozen=True, slots=True)
class WarmUpReport:
    """Which languages have their masks before a request asks for them.

    Units: ``seconds`` of wall clock; ``cache_bytes`` are held by compiled grammars and shared
           masks at its end, those of requests that came meanwhile included.
    """

    done: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    seconds: float
    cache_bytes: int
