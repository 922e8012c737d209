"""What the host waits for on a device; on the CPU nothing, because work is done when it returns."""

from __future__ import annotations

import torch


class DeviceStream:
    """The stream that rounds run on, and the event that says drafts are in host memory."""

    def __init__(self, device: torch.device) -> None:
        self._device = device if device.type == "cuda" else None
        # External, so that a graph that records it makes it visible to the host at every launch.
        self._ready: torch.cuda.Event | None = None
        if self._device is not None:
            self._ready = torch.cuda.Event(external=True)  # type: ignore[no-untyped-call]

    def mark_ready(self) -> None:
        """Say that drafts are there as soon as everything before is done."""
        if self._ready is not None:
            self._ready.record()

    def wait_ready(self) -> None:
        """Wait until the drafts of the last Forward are in host memory."""
        if self._ready is not None:
            self._ready.synchronize()

    def settle(self) -> None:
        """Wait until everything that was launched is done."""
        if self._device is not None:
            torch.cuda.current_stream(self._device).synchronize()
