"""A headless Chromium driven through its own protocol; skips where there is none."""

import asyncio
import itertools
import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import websockets


class Page:
    """One open page."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    async def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        number = next(self._numbers)
        await self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        async for message in self._socket:
            record = json.loads(message)
            if record.get("id") == number:
                assert "error" not in record, record
                return record["result"]
        raise AssertionError("the browser went away")

    async def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        result = await self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, expression: str, seconds: float = 15.0) -> None:
        """Wait until an expression is true."""
        async with asyncio.timeout(seconds):
            while not await self.evaluate(f"Boolean({expression})"):
                await asyncio.sleep(0.05)


@asynccontextmanager
async def open_page(url: str) -> AsyncIterator[Page]:
    """Open a page in a browser of its own."""
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if binary is None:
        pytest.skip("Chromium is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = await asyncio.create_subprocess_exec(
            binary,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            "about:blank",
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            endpoint = await _endpoint(browser.stderr)
            async with _page_socket(endpoint) as socket:
                page = Page(socket)
                await page.command("Page.navigate", url=url)
                await page.until("document.readyState === 'complete'")
                yield page
        finally:
            browser.terminate()
            await browser.wait()


async def _endpoint(stderr: asyncio.StreamReader) -> str:
    async with asyncio.timeout(30):
        while line := (await stderr.readline()).decode():
            if found := re.search(r"ws://\S+", line):
                return found[0]
    raise AssertionError("the browser did not start")


@asynccontextmanager
async def _page_socket(endpoint: str) -> AsyncIterator[Any]:
    async with websockets.connect(endpoint, max_size=None) as root:
        page = Page(root)
        target = await page.command("Target.createTarget", url="about:blank")
    base = endpoint.split("/devtools/")[0]
    async with websockets.connect(
        f"{base}/devtools/page/{target['targetId']}", max_size=None
    ) as socket:
        yield socket
