"""What the target is asked: turns it makes up itself, and tasks whose answer is compact JSON."""

from __future__ import annotations

import random
from collections.abc import Sequence

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"

SUBJECTS = (
    "a cat", "a dog", "a city", "a book", "a film", "a person", "a recipe", "a planet", "a car",
    "a country", "an order of a shop", "a weather report", "a football match", "a flight",
    "a hotel", "a song", "a painting", "a river", "a mountain", "a company", "a job offer",
    "a product", "a bug report", "a meeting", "a calendar entry", "a contact", "an invoice",
    "a bird", "a tree", "a flower", "a computer", "a phone", "a train journey", "a museum",
    "a university course", "a student", "a doctor's appointment", "a shopping list", "a poem",
    "a news article", "a chess opening", "a programming language", "a web page", "a language",
)  # fmt: skip
FIELDS = {
    "name": ('"Luna"', '"Berlin"', '"Alice Johnson"', '"Apollo"'),
    "title": ('"The Long Road"', '"A Quiet Day"', '"Report"'),
    "age": ("3", "27", "64"),
    "price": ("12.5", "199.99", "3.0"),
    "city": ('"Paris"', '"Tokyo"', '"Nairobi"'),
    "country": ('"France"', '"Japan"', '"Kenya"'),
    "color": ('"black"', '"red"', '"blue"'),
    "year": ("1999", "2014", "1875"),
    "available": ("true", "false"),
    "tags": ('["small","quiet"]', '["new","fast","cheap"]', '["history"]'),
    "description": (
        '"A friendly animal that likes to sleep in the sun."',
        '"A large place with many old houses and a river."',
        '"It was written in three months and sold very well."',
    ),
    "rating": ("4.5", "8", "2"),
    "author": ('"Maria Lopez"', '"John Smith"'),
    "size": ('"small"', '"large"', '"medium"'),
    "items": (
        '[{"name":"apple","count":3},{"name":"bread","count":1}]',
        '[{"name":"pen","count":10}]',
    ),
    "address": ('{"street":"Main Street 5","city":"Boston"}',),
    "email": ('"alice@example.com"',),
    "date": ('"2024-05-01"', '"1987-11-23"'),
}
ASKS = (
    "Describe {subject} as JSON.",
    "Give me {subject} as a JSON object.",
    "Write a JSON object about {subject}.",
    "Return {subject} in JSON.",
)


def chat_prefix(user: str | None) -> str:
    """Return the prompt up to the answer, or up to a user turn that the target makes up."""
    opened = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"
    return opened if user is None else f"{opened}{user}<|im_end|>\n<|im_start|>assistant\n"


def json_task(source: random.Random) -> tuple[str, str]:
    """Return a request for compact JSON and how its answer begins.

    The request shows an example in the compact form, so that the free answer is written in it.
    """
    subject = source.choice(SUBJECTS)
    names = source.sample(sorted(FIELDS), source.randint(2, 6))
    example = ",".join(f'"{name}":{source.choice(FIELDS[name])}' for name in names)
    ask = source.choice(ASKS).format(subject=subject)
    shown = source.random() < 0.7
    user = f"{ask} Use the form {{{example}}}" if shown else ask
    first = source.choice(names)
    return user, f'{{"{first}":'


def json_tasks(count: int, source: random.Random) -> Sequence[tuple[str, str]]:
    """Return many tasks."""
    return [json_task(source) for _ in range(count)]
