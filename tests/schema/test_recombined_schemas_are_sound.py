"""Differential fuzzing with pieces of public schemas, combined as nobody wrote them."""

import os
import random

import pytest

from ninfer.contract import RequestError, UnknownKeywords
from support.schema_checks import check_language, check_refusal
from support.schema_fragments import DATA, fragments, recombined
from support.schema_language import compiled

SCHEMAS = 10_000 if os.environ.get("NINFER_SLOW") else 250
SEED = int(os.environ.get("NINFER_SEED", "0"))

pytestmark = pytest.mark.skipif(not DATA.is_file(), reason="needs ../shared/data")


@pytest.mark.slow
def test_random_walks_validate_and_near_misses_are_unreachable():
    pieces, source = fragments(), random.Random(SEED)
    checked = 0
    for _ in range(SCHEMAS):
        schema = recombined(pieces, source)
        try:
            compiled(schema, UnknownKeywords.ANNOTATE)
        except RequestError as error:
            check_refusal(schema, error)
            continue
        seed = source.getrandbits(32)
        check_language(schema, seed, walks=5, unknown=UnknownKeywords.ANNOTATE)
        checked += 1
    assert checked > SCHEMAS / 2
