"""What the official clients offer beyond one call: async streams, parsers, their own errors."""

import asyncio
from typing import Literal

import anthropic
import openai
import pydantic
import pytest

from support.serving import MODEL_ID, scripted_server

SCRIPT = "free as a bird"
MESSAGES = [{"role": "user", "content": "x"}]
GREEDY = {"extra_body": {"temperature": 0}}


class Weather(pydantic.BaseModel):
    degrees: int
    kind: Literal["sun", "rain"]


@pytest.fixture(scope="module")
def url():
    with scripted_server(SCRIPT) as address:
        yield address


def test_async_clients_stream(url):
    async def chat() -> str:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
            chunks = await client.chat.completions.create(
                model=MODEL_ID, messages=MESSAGES, stream=True, temperature=0
            )
            return "".join([c.choices[0].delta.content or "" async for c in chunks])

    async def respond() -> str:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
            events = await client.responses.create(
                model=MODEL_ID, input="x", stream=True, temperature=0
            )
            kind = "response.output_text.delta"
            return "".join([e.delta async for e in events if e.type == kind])

    async def message() -> str:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="none") as client:
            sending = client.messages.stream(model="m", max_tokens=50, messages=MESSAGES, **GREEDY)
            async with sending as stream:
                return "".join([text async for text in stream.text_stream])

    async def all_three() -> list[str]:
        return await asyncio.gather(chat(), respond(), message())

    assert asyncio.run(all_three()) == [SCRIPT] * 3


def test_every_parser_gets_its_type_back(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        response = client.responses.parse(model=MODEL_ID, input="x", text_format=Weather)
        assert isinstance(response.output_parsed, Weather)
    with anthropic.Anthropic(base_url=url, api_key="none") as client:
        message = client.messages.parse(
            model="m", max_tokens=300, messages=MESSAGES, output_format=Weather
        )
        assert isinstance(message.parsed_output, Weather)


def test_a_refusal_is_the_clients_own_error_with_the_place(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(
                model=MODEL_ID,
                messages=MESSAGES,
                extra_body={"structured_outputs": {"regex": "(?=a)"}},
            )
        assert caught.value.param == "structured_outputs.regex"
        assert caught.value.code == "invalid_regex"
        assert caught.value.request_id.startswith("req_")
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="another", messages=MESSAGES)
