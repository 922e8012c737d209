"""Questions to the embedded model, and engines over one copy of it with drafters of every kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ninfer.contract import (
    ChatPrompt,
    EngineOptions,
    ExecutionOptions,
    GenerationResult,
    Message,
    OutputConstraint,
    RequestOptions,
    Role,
    SamplingOverrides,
    SpeculativeBackend,
)
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime import Engine
from ninfer.runtime.loading import LoadedModel, load_drafter
from ninfer.runtime.program import TorchProgram

KINDS = (SpeculativeBackend.MTP, SpeculativeBackend.DFLASH, SpeculativeBackend.DFLASH2)
Question = tuple[str, OutputConstraint | None]


def _schema(**kinds: object) -> OutputConstraint:
    properties = {
        name: {"type": kind} if isinstance(kind, str) else kind for name, kind in kinds.items()
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(kinds),
        "additionalProperties": False,
    }
    return OutputConstraint.json_schema(json.dumps(schema))


_WORDS = {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 6}
SERVED_TOKENS, SERVED_DRAFTS = 40, 3
JSON: tuple[Question, ...] = (
    (
        "Extract name, age and city as JSON: Alice Johnson is 31 years old and lives in Berlin.",
        _schema(name="string", age="integer", city="string"),
    ),
    ("Describe a cat as JSON.", OutputConstraint.json_object()),
    (
        "Write a JSON object about the city of Paris.",
        _schema(name="string", country="string", population="integer", description="string"),
    ),
    (
        "Please send 3 chairs and 12 lamps to Tom Clark in Dublin by Friday. Return the order.",
        _schema(
            name="string",
            city="string",
            items={
                "type": "array",
                "minItems": 1,
                "maxItems": 3,
                "items": {
                    "type": "object",
                    "properties": {"product": {"type": "string"}, "count": {"type": "integer"}},
                    "required": ["product", "count"],
                    "additionalProperties": False,
                },
            },
        ),
    ),
    (
        "Is this review positive or negative? The food was cold and the waiter was rude.",
        _schema(sentiment={"enum": ["positive", "negative"]}, reason="string"),
    ),
    ("Make up a user profile as JSON.", OutputConstraint.json_object()),
    ("Give a recipe for pancakes.", _schema(title="string", ingredients=_WORDS, steps=_WORDS)),
    (
        "The train from Rome to Oslo leaves at 9:15 from platform 4. Answer in JSON.",
        _schema(**{"from": "string", "to": "string", "time": "string", "platform": "integer"}),
    ),
)
PROSE: tuple[Question, ...] = (
    ("Tell me about Paris.", None),
    ("How can I sleep better?", None),
    ("Explain what a database index is.", None),
    ("Write a short story about a dog.", None),
    ("What should I eat for breakfast?", None),
    ("Why is the sky blue?", None),
)

_ANY = OutputConstraint.json_object()
HELD_OUT: tuple[Question, ...] = (
    (
        "Write a JSON object about a city. Use the form "
        '{"color":"blue","id":1,"summary":"A short text about a long day.","rating":8}',
        _ANY,
    ),
    ("Create an example of a language as JSON.", _ANY),
    (
        "Create an example of a robot as JSON. Use the form "
        '{"population":85000,"color":"red","type":"place"}',
        _ANY,
    ),
    (
        "Create an example of a country as JSON. Use the form "
        '{"breed":"Labrador","active":false,"name":"Luna"}',
        _ANY,
    ),
    (
        "Text: Carlos Lee works as a painter in Rome and can be reached at carlos@example.com.\n"
        "Give name, job, email and city as JSON.",
        _ANY,
    ),
    ("Can you tell me the fastest pythonic way to remove duplicate rows from a list?", None),
    ("I was a romantic interests. But over a year I was a criminal.", None),
    (
        "Can you explain the concept of renewable energy sources in simple terms, so that I can "
        "understand it better?",
        None,
    ),
)
"""Questions of dialogues that were kept from training; ``served`` in each report is over these."""


@contextmanager
def drafting(
    model: LoadedModel, kind: SpeculativeBackend, drafts: int = 0, rows: int = 1
) -> Iterator[Engine]:
    """Open an engine over a model that is in memory already, with the shipped drafter."""
    drafts = drafts if kind is not SpeculativeBackend.NONE else 0
    options = EngineOptions(
        max_concurrency=rows, max_context=512, speculative=kind, draft_tokens=drafts
    )
    drafter = None if kind is SpeculativeBackend.NONE else load_drafter(model, kind)
    engine = Engine(TorchProgram(model, options, drafter), Frontend(model.facts), options)
    try:
        yield engine
    finally:
        engine.close()


def greedy(constraint: OutputConstraint | None, tokens: int) -> RequestOptions:
    """Return a request without chance and without penalties."""
    sampling = SamplingOverrides(temperature=0.0, presence_penalty=0.0)
    return RequestOptions(
        constraint=constraint,
        execution=ExecutionOptions(sampling=sampling, requested_output_tokens=tokens),
    )


def ask(engine: Engine, questions: Sequence[Question], tokens: int) -> list[GenerationResult]:
    """Return the greedy answers of all questions, asked together."""
    handles = [
        engine.start(ChatPrompt((Message(Role.USER, text),)), greedy(constraint, tokens))
        for text, constraint in questions
    ]
    return [handle.wait() for handle in handles]


def mean_accepted(results: Sequence[GenerationResult]) -> float:
    """Return the accepted drafts of a round."""
    rounds = sum(result.speculative.rounds for result in results)
    return sum(result.speculative.accepted_tokens for result in results) / max(rounds, 1)
