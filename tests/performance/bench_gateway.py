"""What the gateway adds per streamed token, at eight streams, over a scripted program.

The clock is the CPU time of the event loop's own thread: engine, program and client run elsewhere.
Bar: 150 µs a token.
"""

import asyncio
import json
import time

import httpx
import pytest

from ninfer.contract import EngineOptions
from ninfer.gateway.options import ServerOptions
from ninfer.gateway.server import serve
from support.answering import scripted_engine

STREAMS = 8
TOKENS = 200
BAR_SECONDS = 150e-6
PATHS = {
    "/v1/chat/completions": {"max_tokens": TOKENS, "messages": [{"role": "user", "content": "x"}]},
    "/v1/responses": {"max_output_tokens": TOKENS, "input": "x"},
    "/v1/messages": {"max_tokens": TOKENS, "messages": [{"role": "user", "content": "x"}]},
}


pytestmark = pytest.mark.usefixtures("only_when_timed")


@pytest.fixture(scope="module")
def engine():
    options = EngineOptions(max_concurrency=STREAMS)
    with scripted_engine("abcdefghij" * 100, options) as engine:
        yield engine


@pytest.mark.parametrize("path", PATHS)
def test_overhead_of_a_streamed_token(benchmark, engine, path):
    seconds = benchmark.pedantic(lambda: asyncio.run(_measure(engine, path)), rounds=3)
    benchmark.extra_info["loop_microseconds_per_token"] = seconds * 1e6
    assert seconds <= BAR_SECONDS


async def _measure(engine, path: str) -> float:
    async with serve(engine, ServerOptions(port=0)) as running:
        await _ask_all(running.url, path, 4)
        started = time.thread_time()
        await _ask_all(running.url, path, TOKENS)
        return (time.thread_time() - started) / (STREAMS * TOKENS)


async def _ask_all(url: str, path: str, tokens: int) -> None:
    limits = {name: tokens for name in PATHS[path] if name.startswith("max_")}
    body = {"model": "ninfer", "stream": True, "temperature": 0} | PATHS[path] | limits
    work = [asyncio.to_thread(_read, url + path, body) for _ in range(STREAMS)]
    assert min(await asyncio.gather(*work)) >= tokens


def _read(url: str, body: dict) -> int:
    with httpx.stream("POST", url, content=json.dumps(body), timeout=120) as reply:
        return sum(line.startswith("data: ") for line in reply.iter_lines())
