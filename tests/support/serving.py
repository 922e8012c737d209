"""A gateway on a free loopback port, on an event loop of its own thread."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ninfer.contract import EngineOptions
from ninfer.gateway.options import ServerOptions
from ninfer.gateway.server import serve
from ninfer.runtime import Engine
from support.answering import TEMPLATE, scripted_engine

MODEL_ID = "scripted"


@contextmanager
def serving(engine: Engine, options: ServerOptions | None = None) -> Iterator[str]:
    """Serve an engine and yield the server's address; everything is gone afterwards."""
    options = options or ServerOptions(port=0, model_id=MODEL_ID)
    started: threading.Event = threading.Event()
    found: dict[str, object] = {}

    async def run() -> None:
        found["loop"] = asyncio.get_running_loop()
        stop = found["stop"] = asyncio.Event()
        async with serve(engine, options) as running:
            found["url"] = running.url
            started.set()
            await stop.wait()

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            found["error"] = error
            raise
        finally:
            started.set()

    thread = threading.Thread(target=work, name="test-server")
    thread.start()
    started.wait(10)
    if "error" in found:
        raise found["error"]
    try:
        yield found["url"]
    finally:
        found["loop"].call_soon_threadsafe(found["stop"].set)
        thread.join(20)
        assert not thread.is_alive(), "the server does not stop"


@contextmanager
def scripted_server(
    script: str | Callable[[str], str], *, rows: int = 4, template: str = TEMPLATE
) -> Iterator[str]:
    """Serve an engine whose free answer is the script, and yield the address."""
    options = EngineOptions(max_concurrency=rows)
    with scripted_engine(script, options, template=template) as engine, serving(engine) as address:
        yield address
