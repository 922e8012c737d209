"""Runs an app in this process, on this thread's event loop, until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, cast

from sanic.server.protocols.http_protocol import HttpProtocol

from ninfer.contract import MemoryReport, WarmUpReport
from ninfer.gateway.app import create_app
from ninfer.gateway.options import ServerOptions
from ninfer.runtime import Engine

_PEER_TIMEOUT_MS = 15_000
_KEEPALIVE_SECONDS = 5
_WARM_UP_LOOK_SECONDS = 0.05


class RunningServer(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """Return the address clients use."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


@asynccontextmanager
async def serve(engine: Engine, options: ServerOptions) -> AsyncIterator[RunningServer]:
    """Serve an engine for the length of an ``async with`` block.

    Effects: on leaving, no new connection is taken, open responses get ``shutdown_seconds`` to
             end, and those that do not are cut and their requests cancelled.
    Raises:  OSError — the address cannot be listened on.
    """
    app = create_app(engine, options)
    listener = listen(options)
    server: Any = await app.create_server(sock=listener, access_log=False)
    await server.startup()
    await server.start_serving()
    host, port = listener.getsockname()[:2]
    try:
        yield RunningServer(host, port)
    finally:
        server.close()
        await _drain(server.connections, options.shutdown_seconds)
        app.ctx.gateway.service.close()


def listen(options: ServerOptions) -> socket.socket:
    """Return a listening socket.

    Raises: OSError — the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.create_server((options.host, options.port), family=family, backlog=256)
    listener.setblocking(False)
    # Accepted sockets inherit these: a peer that vanished without a word is noticed, because
    # silence is filled with comments that it never acknowledges.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _PEER_TIMEOUT_MS)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_SECONDS)
    return listener


async def serve_until_signalled(engine: Engine, options: ServerOptions) -> None:
    """Serve until SIGINT or SIGTERM, and say on stderr where, with how much memory, how warm."""
    import sys

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serve(engine, options) as running:
        sys.stderr.write(f"serving {options.model_id} at {running.url}\n")
        sys.stderr.write(memory_line(engine.memory_summary()) + "\n")
        sys.stderr.flush()
        while engine.is_warming and not stop.is_set():
            await asyncio.sleep(_WARM_UP_LOOK_SECONDS)
        report = engine.warm_up_report
        if report is not None:
            sys.stderr.write(warm_up_line(report) + "\n")
            sys.stderr.flush()
        await stop.wait()


def memory_line(memory: MemoryReport) -> str:
    """Return what an engine holds and may take, in one line for a reader."""
    parts = {
        "weights": memory.weight_bytes,
        "key-value pool": memory.kv_bytes,
        "recurrent states": memory.state_bytes,
        "masks": memory.mask_host_bytes + memory.mask_device_bytes,
        "paused requests up to": memory.host_snapshot_bytes,
        "grammars up to": memory.grammar_cache_bytes,
    }
    return "memory: " + ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in parts.items())


def warm_up_line(report: WarmUpReport) -> str:
    """Return what a warm-up did and left out, in one line for a reader."""
    reasons = Counter(left.reason.value for left in report.left_out)
    left = "".join(f", {count} left out: {reason}" for reason, count in sorted(reasons.items()))
    return (
        f"warm-up: {len(report.done)} languages in {report.seconds:.1f} s, "
        f"{report.cache_bytes / 1e6:.1f} MB{left}"
    )


async def _drain(connections: set[HttpProtocol], seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while any(not connection.close_if_idle() for connection in list(connections)):
                await asyncio.sleep(0.02)
    for connection in list(connections):
        cast("Any", connection).abort()
    while connections:
        await asyncio.sleep(0.01)
