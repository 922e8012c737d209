"""What the target is asked: turns it makes up itself, and tasks whose answer is compact JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from drafters.subjects import (
    ANY_VALUE,
    CITIES,
    FIELDS,
    FIRST_NAMES,
    GOODS,
    JOBS,
    LAST_NAMES,
    LISTS,
    MONTHS,
    OPINIONS,
    OTHER_KEYS,
    PASSAGES,
    SUBJECTS,
)

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
SYSTEMS = (
    "You are a helpful assistant.",
    "You answer in JSON only.",
    "You extract facts from text.",
    "Answer briefly.",
    "You are a careful data entry clerk.",
    "You are a friendly teacher who explains things step by step.",
)
ASKS = (
    "Describe {subject} as JSON.",
    "Give me {subject} as a JSON object.",
    "Write a JSON object about {subject}.",
    "Return {subject} in JSON.",
    "Create an example of {subject} as JSON.",
    "Make up {subject}. Answer with a JSON object.",
)
EXTRACTS = (
    "Extract {fields} from this text as JSON: {text}",
    "{text}\n\nReturn {fields} as a JSON object.",
    "Read the text and answer in JSON with the keys {fields}.\n\n{text}",
    "Text: {text}\nGive {fields} as JSON.",
)

BARE_ASKS = (
    "Tell me about {subject}.",
    "Describe {subject}.",
    "What do you know about {subject}?",
    "Give an example of {subject}.",
    "Make up {subject}.",
    "I am interested in {subject}. What should I know?",
)
BARE_EXTRACTS = (
    "{text}",
    "{text} Return the facts.",
    "What does this text say? {text}",
    "{text} Answer in JSON.",
    "Extract the important information: {text}",
)
KIND_OPENINGS = {"string": '":"', "array": '":["', "object": '":{"'}
"""How values of a kind begin behind their key; of other kinds nothing is known."""
OBJECT, ARRAY = '{"', '["'
MOST_NAMES = 6


class Form(NamedTuple):
    """What an answer is held to: how it begins, and its other keys; without any, none is forced."""

    opening: str
    keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Sequence[str]) -> Form:
        """Return the form of an object with some keys in their order."""
        first, *others = (f"{name}{_value_opening(name)}" for name in names)
        return cls(OBJECT + first, tuple(others))


JUDGEMENTS = (
    ("sentiment", "reason"),
    ("sentiment", "rating", "summary"),
    ("label", "score"),
    ("reason", "sentiment"),
)
KINDS = (
    {name: field.kind for name, field in FIELDS.items()}
    | {name: "string" for _, names in PASSAGES for name in names if name not in FIELDS}
    | {name: kind for kind, names in OTHER_KEYS.items() for name in names}
    | {"items": "list"}
)
"""The kind of value that each key of any form has; a list may hold anything."""


def chat_prefix(user: str | None, system: str = SYSTEM) -> str:
    """Return the prompt up to the answer, or up to a user turn that the target makes up."""
    opened = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n"
    return opened if user is None else f"{opened}{user}<|im_end|>\n<|im_start|>assistant\n"


def forced_texts() -> list[str]:
    """Return every text that a form may force."""
    keys = [f"{name}{_value_opening(name)}" for name in sorted(KINDS)]
    return [OBJECT, ARRAY, *keys, *(OBJECT + key for key in keys)]


def any_form(source: random.Random) -> Form:
    """Return a form that a request need not know of, as a schema is to the model."""
    if source.random() < 0.15:
        return Form(OBJECT)
    return Form.of(source.sample(sorted(KINDS), source.randint(2, MOST_NAMES)))


def json_task(source: random.Random, passages: Sequence[str] = ()) -> tuple[str, Form]:
    """Return a request for JSON and the form that its answer is held to.

    Some show the form that is wanted, some name the keys, some say nothing of either. ``passages``
    are texts that the target wrote; some tasks ask for facts of one.
    """
    kinds: list[Callable[[random.Random], tuple[str, Form]]] = [
        _described, _described, _extracted, _extracted, _listed, _judged, _schema, _bare, _bare,
    ]  # fmt: skip
    if passages and source.random() < 0.2:
        return _summarised(source, source.choice(passages))
    return source.choice(kinds)(source)


def _described(source: random.Random) -> tuple[str, Form]:
    ask = source.choice(ASKS).format(subject=source.choice(SUBJECTS))
    names = _field_names(source)
    shown = source.random()
    if shown < 0.4:
        example = ",".join(f'"{name}":{_value(source, name)}' for name in names)
        ask = f"{ask} Use the form {{{example}}}"
    elif shown < 0.7:
        ask = f"{ask} Use the keys {_joined(names)}."
    return ask, _form(source, names)


def _extracted(source: random.Random) -> tuple[str, Form]:
    text, names = _facts(source)
    ask = source.choice(EXTRACTS).format(fields=_joined(names), text=text)
    return ask, _form(source, names)


def _bare(source: random.Random) -> tuple[str, Form]:
    """Return a request that says nothing of a form; where it has facts, the keys may be theirs."""
    if source.random() < 0.5:
        ask = source.choice((*ASKS, *BARE_ASKS)).format(subject=source.choice(SUBJECTS))
        return ask, any_form(source)
    text, names = _facts(source)
    ask = source.choice(BARE_EXTRACTS).format(text=text)
    return ask, Form.of(names) if source.random() < 0.6 else any_form(source)


def _facts(source: random.Random) -> tuple[str, Sequence[str]]:
    """Return a text and the names of facts in it."""
    first = source.choice(FIRST_NAMES)
    city, other = source.sample(CITIES, 2)
    passage, names = source.choice(PASSAGES)
    text = passage.format(
        first=first, lower=first.lower(), last=source.choice(LAST_NAMES), city=city, other=other,
        friend=source.choice(FIRST_NAMES), goods=source.choice(GOODS), more=source.choice(GOODS),
        age=source.randint(5, 90), count=source.randint(2, 12), price=source.randint(2, 400),
        job=source.choice(JOBS), month=source.choice(MONTHS), day=source.randint(1, 28),
        year=source.randint(1950, 2024), hour=source.randint(6, 21),
        minute=source.choice(("00", "15", "30", "45")), degrees=source.randint(-5, 38),
        sky=source.choice(("sunny", "cloudy", "windy", "rainy")),
    )  # fmt: skip
    return text, names


def _listed(source: random.Random) -> tuple[str, Form]:
    what = source.choice(LISTS)
    count = source.randint(2, 8)
    if source.random() < 0.4:
        return f"List {count} {what} as a JSON array of strings.", Form(ARRAY)
    ask = f"Name {count} {what}. Answer in JSON."
    return ask, source.choice((Form(OBJECT), Form(OBJECT), any_form(source)))


def _judged(source: random.Random) -> tuple[str, Form]:
    text = source.choice(OPINIONS).format(good=source.choice(GOODS), city=source.choice(CITIES))
    ask = source.choice((
        "Is this review positive or negative? Answer as JSON with sentiment and reason. {text}",
        'Classify the text. Use the form {{"label":"positive","score":0.9}}. Text: {text}',
        "Review: {text}\nReturn JSON with the keys sentiment, rating and summary.",
        "Is this positive or negative? {text}",
        "{text} What do you make of it?",
    )).format(text=text)  # fmt: skip
    return ask, _form(source, source.choice(JUDGEMENTS))


def _schema(source: random.Random) -> tuple[str, Form]:
    names = _field_names(source)
    properties = {name: {"type": FIELDS[name].kind} for name in names}
    schema = {"type": "object", "properties": properties, "required": names}
    ask = source.choice(ASKS).format(subject=source.choice(SUBJECTS))
    return f"{ask} It must match this JSON schema: {json.dumps(schema)}", Form.of(names)


def _summarised(source: random.Random, passage: str) -> tuple[str, Form]:
    names = source.choice((["title", "summary"], ["topic", "keywords"], ["summary", "tags"]))
    ask = source.choice(EXTRACTS).format(fields=_joined(names), text=passage)
    return ask, _form(source, names)


def _form(source: random.Random, names: Sequence[str]) -> Form:
    """Return a form with these names, or one that leaves the keys to the model."""
    return Form(OBJECT) if source.random() < 0.4 else Form.of(names)


def _value_opening(name: str) -> str:
    return KIND_OPENINGS.get(KINDS[name], '":')


def _field_names(source: random.Random) -> list[str]:
    return source.sample(sorted(FIELDS), source.randint(2, MOST_NAMES))


def _value(source: random.Random, name: str) -> str:
    return source.choice(FIELDS[name].values or ANY_VALUE)


def _joined(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
