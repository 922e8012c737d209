"""Random walks through tool languages, each read back and judged by an independent validator."""

import json
import random

import jsonschema

from support.masks import mask_buffer
from support.sessions import drive
from support.tool_sets import random_tool_set, reencoded

URGES = (
    *("\n</parameter>\n", "</function>\n</tool_call>", "<parameter=", "<function=", '"', "]", "}"),
    *(", ", ": ", "0", "12-34", "ab", "true", "null", "{", "[", "\n", ">\n", "</tool_call>"),
)


def random_answer(session, source: random.Random, vocabulary, encode, steps: int) -> list[int]:
    """Return tokens of a random word of the session's language, or of a prefix after ``steps``."""
    matcher, taken = session.matcher, []
    urges = [encode(text) for text in URGES]
    for _ in range(steps):
        row = _allowed_bits(matcher)
        ends = [token for token in vocabulary.eos_ids if row[token // 8] >> token % 8 & 1]
        if ends:
            return [*taken, ends[0]]
        chosen = [_random_bit(row, source)]
        if source.random() < 0.7:
            fits = [u for u in source.sample(urges, len(urges)) if _fits(matcher, u)]
            chosen = fits[0] if fits else chosen
        assert matcher.preview(chosen) == len(chosen)
        matcher.commit()
        taken += chosen
    return taken


def _allowed_bits(matcher) -> bytes:
    masks = mask_buffer(1, matcher.mask_words)
    assert not matcher.lookahead((), masks).dead_ends
    return masks.tobytes()


def _random_bit(row: bytes, source: random.Random) -> int:
    """Return a set bit; in wide rows without listing them all."""
    for _ in range(20):
        bit = source.randrange(8 * len(row))
        if row[bit // 8] >> bit % 8 & 1:
            return bit
    filled = [at for at, byte in enumerate(row) if byte]
    at = source.choice(filled)
    return 8 * at + source.choice([bit for bit in range(8) if row[at] >> bit & 1])


def _fits(matcher, tokens) -> bool:
    taken = matcher.preview(tokens)
    matcher.discard()
    return taken == len(tokens)


def check_random_set(seed: int, open_session, vocabulary, encode, steps=400) -> bool:
    """Generate one answer for a random tool set and read it back; False where it was cut."""
    tools = random_tool_set(seed)
    schemas = {tool.name: json.loads(tool.parameters_json) for tool in tools}
    tokens = random_answer(open_session(tools), random.Random(seed), vocabulary, encode, steps)
    transcript = drive(open_session(tools), tokens, [7] * len(tokens))
    for found in transcript.output.tool_calls:
        jsonschema.validate(json.loads(found.arguments_json), schemas[found.name])
    if tokens[-1] not in vocabulary.eos_ids:
        return False
    text = b"".join(vocabulary.pieces[t] for t in tokens if t not in vocabulary.eos_ids).decode()
    again = (
        reencoded(c.name, c.arguments_json, schemas[c.name]) for c in transcript.output.tool_calls
    )
    assert "\n".join(again) == text
    assert transcript.content == ""
    return True
