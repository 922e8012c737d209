"""What the target is asked: turns it makes up itself, and tasks whose answer is compact JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

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


def chat_prefix(user: str | None, system: str = SYSTEM) -> str:
    """Return the prompt up to the answer, or up to a user turn that the target makes up."""
    opened = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n"
    return opened if user is None else f"{opened}{user}<|im_end|>\n<|im_start|>assistant\n"


def json_task(source: random.Random, passages: Sequence[str] = ()) -> tuple[str, str]:
    """Return a request for JSON and how its answer begins.

    Some show the form that is wanted, some name the keys, some say nothing of either. ``passages``
    are texts that the target wrote; some tasks ask for facts of one.
    """
    kinds: list[Callable[[random.Random], tuple[str, str]]] = [
        _described, _described, _extracted, _extracted, _listed, _judged, _schema,
    ]  # fmt: skip
    if passages and source.random() < 0.25:
        return _summarised(source, source.choice(passages))
    return source.choice(kinds)(source)


def _described(source: random.Random) -> tuple[str, str]:
    ask = source.choice(ASKS).format(subject=source.choice(SUBJECTS))
    names = _field_names(source)
    shown = source.random()
    if shown < 0.4:
        example = ",".join(f'"{name}":{_value(source, name)}' for name in names)
        ask = f"{ask} Use the form {{{example}}}"
    elif shown < 0.7:
        ask = f"{ask} Use the keys {_joined(names)}."
    return ask, _opening(source, names)


def _extracted(source: random.Random) -> tuple[str, str]:
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
    ask = source.choice(EXTRACTS).format(fields=_joined(names), text=text)
    return ask, _opening(source, names)


def _listed(source: random.Random) -> tuple[str, str]:
    what = source.choice(LISTS)
    count = source.randint(2, 8)
    if source.random() < 0.4:
        return f"List {count} {what} as a JSON array of strings.", '["'
    ask = f"Name {count} {what}. Answer in JSON."
    return ask, source.choice(('{"', '{"items', f'{{"{what.split()[-1]}'))


def _judged(source: random.Random) -> tuple[str, str]:
    text = source.choice(OPINIONS).format(good=source.choice(GOODS), city=source.choice(CITIES))
    ask = source.choice((
        "Is this review positive or negative? Answer as JSON with sentiment and reason. {text}",
        'Classify the text. Use the form {{"label":"positive","score":0.9}}. Text: {text}',
        "Review: {text}\nReturn JSON with the keys sentiment, rating and summary.",
    )).format(text=text)  # fmt: skip
    return ask, source.choice(('{"', '{"sentiment', '{"label', '{"rating'))


def _schema(source: random.Random) -> tuple[str, str]:
    names = _field_names(source)
    properties = {name: {"type": FIELDS[name].kind} for name in names}
    schema = {"type": "object", "properties": properties, "required": names}
    ask = source.choice(ASKS).format(subject=source.choice(SUBJECTS))
    return f"{ask} It must match this JSON schema: {json.dumps(schema)}", _opening(source, names)


def _summarised(source: random.Random, passage: str) -> tuple[str, str]:
    names = source.choice((["title", "summary"], ["topic", "keywords"], ["summary", "tags"]))
    ask = source.choice(EXTRACTS).format(fields=_joined(names), text=passage)
    return ask, _opening(source, names)


def _opening(source: random.Random, names: Sequence[str]) -> str:
    """Return how the answer begins: its first key without the quote's end, or nothing of it."""
    return '{"' if source.random() < 0.3 else f'{{"{names[0]}'


def _field_names(source: random.Random) -> list[str]:
    return source.sample(sorted(FIELDS), source.randint(2, 6))


def _value(source: random.Random, name: str) -> str:
    return source.choice(FIELDS[name].values or ANY_VALUE)


def _joined(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
