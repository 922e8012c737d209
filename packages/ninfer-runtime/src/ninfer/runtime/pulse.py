"""Measures what the worker achieves, period by period, while there is something to do."""

from __future__ import annotations

from ninfer.runtime.counters import EngineStats
from ninfer.runtime.request_log import RequestLog, Throughput

PERIOD_SECONDS = 10.0


class Pulse:
    """Reports a throughput for every period in which tokens were computed."""

    def __init__(self, log: RequestLog, now: float) -> None:
        self._log = log
        self._started = now
        self._prefilled = 0
        self._generated = 0

    def add(self, *, prefilled: int = 0, generated: int = 0) -> None:
        """Count tokens of the current period."""
        self._prefilled += prefilled
        self._generated += generated

    @property
    def has_tokens(self) -> bool:
        """Return whether the current period has something to report."""
        return bool(self._prefilled or self._generated)

    def rest(self, now: float) -> float | None:
        """Return how long an idle worker may sleep before it must beat; None is for ever."""
        return max(self._started + PERIOD_SECONDS - now, 0.001) if self.has_tokens else None

    def wake(self, now: float) -> None:
        """Begin a period at the end of a sleep, which is no time of work."""
        if not self.has_tokens:
            self._started = now

    def beat(self, now: float, stats: EngineStats) -> None:
        """Report when a period is over; a period without tokens is silent."""
        seconds = now - self._started
        if seconds < PERIOD_SECONDS:
            return
        if self.has_tokens:
            self._log.throughput(
                Throughput(
                    seconds,
                    self._prefilled,
                    self._generated,
                    stats.requests_running,
                    stats.requests_waiting,
                    stats.requests_paused,
                )
            )
        self._started, self._prefilled, self._generated = now, 0, 0
