"""A schema's language held against an independent validator, and refusals against their places."""

from __future__ import annotations

import json
import random
from typing import Any

from ninfer.contract import JsonPointer, RequestError, UnknownKeywords
from ninfer.text.schema.reduction import Reduction
from ninfer.text.schema.source import read_schema
from support.schema_forms import Forms
from support.schema_language import accepts, compiled, compiler
from support.schema_walks import compact, near_misses, random_word, validator


def check_refusal(schema: Any, error: RequestError) -> None:
    """Check that an error names a place that the schema has."""
    assert isinstance(error.location, JsonPointer), error
    place = schema
    for token in error.location.tokens:
        place = place[int(token)] if isinstance(place, list) else place[token]


def check_language(
    schema: Any,
    seed: int,
    *,
    walks: int = 6,
    unknown: UnknownKeywords = UnknownKeywords.REFUSE,
) -> None:
    """Check that random words are valid and of the closed form, and that near misses are not in."""
    judge = validator(schema)
    source = random.Random(seed)
    forms = Forms(Reduction(read_schema(json.dumps(schema), unknown)))
    for _ in range(walks):
        word = random_word(compiler().matcher(compiled(schema, unknown)), source)
        if word is None:
            continue
        value = json.loads(word.decode())
        if "Infinity" in compact(value):
            continue  # the empty schema allows numbers that this reader does not have
        assert judge.is_valid(value), f"{compact(schema)} generates {word!r}"
        assert forms.has(value, forms.reduction.root), f"{compact(schema)}: lacks {word!r}"
        for miss in near_misses(value, source):
            if not judge.is_valid(miss):
                texts = _spellings(forms, miss)
                assert not any(accepts(schema, text, unknown) for text in texts), compact(miss)


def _spellings(forms: Forms, value: Any) -> list[str]:
    try:
        return forms.texts(value)
    except RequestError:
        # Telling its form takes a part of the schema that the language does without.
        return [compact(value)]
