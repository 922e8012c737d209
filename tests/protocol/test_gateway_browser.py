"""The page in a real browser: an answer under a constraint, its trace, and a marked refusal."""

import asyncio
import json

import pytest

from support.browser import open_page
from support.serving import scripted_server


@pytest.fixture(scope="module")
def url():
    with scripted_server("free", rows=2) as address:
        yield address


async def fill(page, **fields: str) -> None:
    for name, value in fields.items():
        await page.evaluate(
            f"(() => {{ const field = document.getElementById({json.dumps(name)});"
            f" field.value = {json.dumps(value)}; field.dispatchEvent(new Event('change')); }})()"
        )


async def send(page) -> None:
    await page.until("document.getElementById('model').textContent")
    await page.evaluate("document.getElementById('send').click()")


def text(name: str) -> str:
    return f"document.getElementById('{name}').textContent"


def test_an_answer_streams_with_its_trace_and_report(url):
    async def visit() -> None:
        async with open_page(url) as page:
            await fill(page, kind="choice", temperature="0")
            await fill(page, source="cat\ncar")
            await send(page)
            await page.until("document.querySelectorAll('.token').length === 4")
            assert (await page.evaluate(text("answer")))[:3] in ("cat", "car")
            kinds = await page.evaluate(
                "[...document.querySelectorAll('.token')].map((t) => t.className.split(' ')[1])"
            )
            assert kinds == ["forced", "forced", "chosen", "forced"]
            title = await page.evaluate("document.querySelector('.token.chosen').title")
            assert title == "2 tokens were allowed"
            report = json.loads(await page.evaluate(text("report")))
            assert report["constraint"]["terminated"] is True
            assert await page.evaluate("document.getElementById('error').hidden")

    asyncio.run(visit())


def test_a_refusal_marks_the_offending_place(url):
    async def visit() -> None:
        async with open_page(url) as page:
            await fill(page, kind="json_schema")
            await fill(page, source='{"properties": {"a": {"type": "text"}}}')
            await send(page)
            await page.until("!document.getElementById('error').hidden")
            assert "/properties/a/type" in await page.evaluate(text("error"))
            marked = await page.evaluate("document.querySelector('.place').textContent")
            assert marked == '"type": "text"'

    asyncio.run(visit())
