"""What the commands need from the machine; a test provides its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ninfer.contract import EngineOptions

if TYPE_CHECKING:
    from ninfer.runtime import Engine

    OpenEngine = Callable[[Path | None, EngineOptions], AbstractContextManager[Engine]]


@dataclass(frozen=True, slots=True)
class Services:
    """Where a command gets its engine from: a model path and options to an open engine."""

    open_engine: OpenEngine


@dataclass(slots=True)
class Invocation:
    """One run of the command: its services, and what a failure message needs to know."""

    services: Services
    constraint_flag: str | None = None
    as_json: bool = False
