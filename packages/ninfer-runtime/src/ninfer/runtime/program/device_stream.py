"""What the host waits for on a device; on the CPU nothing, because work is done when it returns."""

from __future__ import annotations

import torch


class DeviceStream:
    """The stream that rounds run on, and the events of what reaches the host within a round.

    Each is marked inside a stage and awaited after its launch.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device if device.type == "cuda" else None
        self.drafted = _Event(self._device)
        self.licensed = _Event(self._device)
        self.ahead = _Event(self._device)

    def settle(self) -> None:
        """Wait until everything that was launched is done."""
        if self._device is not None:
            torch.cuda.current_stream(self._device).synchronize()


class _Event:
    """Says that what was copied to host memory before it is there."""

    def __init__(self, device: torch.device | None) -> None:
        self._event: torch.cuda.Event | None = None
        if device is not None:
            # External, so that a graph that records it shows it to the host at every launch.
            self._event = torch.cuda.Event(external=True)  # type: ignore[no-untyped-call]

    def mark(self) -> None:
        """Let it happen as soon as everything launched before is done."""
        if self._event is not None:
            self._event.record()

    def wait(self) -> None:
        """Wait for the last one that was marked."""
        if self._event is not None:
            self._event.synchronize()
