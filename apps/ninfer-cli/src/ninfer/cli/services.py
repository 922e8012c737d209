"""What the commands need from the machine; a test provides its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ninfer.cli.places import Places

if TYPE_CHECKING:
    from ninfer.gateway.opening import OpenEngine


@dataclass(frozen=True, slots=True)
class Services:
    """Where a command gets its engine from."""

    open_engine: OpenEngine


@dataclass(slots=True)
class Invocation:
    """One run of the command: its services, and what a failure message needs to know."""

    services: Services
    places: Places = field(default_factory=Places)
    as_json: bool = False
