"""Many clients, some of which leave: nothing leaks, each request ends once, nobody notices."""

import asyncio
import json
import os
import random
import time

import httpx

from ninfer.contract import EngineOptions
from ninfer.gateway.options import ServerOptions
from ninfer.runtime import SilentLog
from support.answering import scripted_engine
from support.serving import MODEL_ID, serving

CLIENTS = 64 if os.environ.get("NINFER_SLOW") else 24
REQUESTS = 1000 if os.environ.get("NINFER_SLOW") else 100
LEAVING = 0.3
SCRIPT = "The answer is long enough to be left in the middle."


class CountingLog(SilentLog):
    """Remembers which requests started and how each of them ended."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.ended: list[int] = []

    def start(self, request):
        self.started.append(request.request_id)

    def done(self, request, result):
        self.ended.append(request.request_id)

    def error(self, request, error):
        self.ended.append(request.request_id)


def test_clients_that_leave_at_random_disturb_nobody():
    log = CountingLog()
    options = EngineOptions(
        max_concurrency=8, max_pending_requests=CLIENTS, pending_timeout_ms=120_000
    )
    engine = scripted_engine(SCRIPT, options, log=log)
    server = ServerOptions(port=0, model_id=MODEL_ID, silence_seconds=0.5)
    with engine, serving(engine, server) as url:
        whole, left = asyncio.run(_ask_all(url))
        _wait_until_idle(engine)
        assert engine.stats().requests_outstanding == 0
    assert whole + left == REQUESTS
    assert whole > 0
    assert left > 0
    assert sorted(log.started) == sorted(log.ended)
    assert len(set(log.ended)) == len(log.ended)


async def _ask_all(url: str) -> tuple[int, int]:
    numbers = iter(range(REQUESTS))
    counts = {"whole": 0, "left": 0}

    async def work(client: httpx.AsyncClient) -> None:
        for number in numbers:
            counts[await _ask(client, url, number)] += 1

    async with httpx.AsyncClient(timeout=120) as client:
        await asyncio.gather(*(work(client) for _ in range(CLIENTS)))
    return counts["whole"], counts["left"]


async def _ask(client: httpx.AsyncClient, url: str, number: int) -> str:
    choose = random.Random(number)
    leaves_after = choose.randrange(12) if choose.random() < LEAVING else None
    fields = {
        "model": MODEL_ID,
        "stream": True,
        "temperature": 0,
        "messages": [{"role": "user", "content": f"{number}"}],
    }
    text, done = "", False
    async with client.stream("POST", f"{url}/v1/chat/completions", json=fields) as reply:
        assert reply.status_code == 200
        async for line in reply.aiter_lines():
            if line == "data: [DONE]":
                done = True
            elif line.startswith("data: "):
                record = json.loads(line.removeprefix("data: "))
                text += record["choices"][0]["delta"].get("content") or ""
            if leaves_after is not None and len(text) >= leaves_after:
                return "left"
    assert done
    assert text == SCRIPT
    return "whole"


def _wait_until_idle(engine) -> None:
    limit = time.monotonic() + 20
    while engine.stats().requests_outstanding and time.monotonic() < limit:
        time.sleep(0.01)
