"""Fields of a drafter's shape, checked alike under whatever name a configuration gives them."""

from __future__ import annotations

from ninfer.runtime.models.config import DecoderConfig
from ninfer.runtime.models.config_fields import ConfigFields


def whole_numbers(fields: ConfigFields, name: str) -> tuple[int, ...]:
    """Return a list of whole numbers.

    Raises: ModelError — it is anything else.
    """
    numbers = fields.numbers(name)
    if not all(number.is_integer() for number in numbers):
        raise fields.fail(name, f"{list(numbers)} are not whole numbers")
    return tuple(int(number) for number in numbers)


def same(fields: ConfigFields, name: str, of_target: int) -> int:
    """Return a number that is the target's.

    Raises: ModelError — it is missing or another.
    """
    value = fields.require(name, int)
    if value != of_target:
        raise fields.fail(name, f"{value}, the target has {of_target}")
    return value


def kv_heads(fields: ConfigFields, name: str, heads: int) -> int:
    """Return the number of key heads, which divides that of the query heads.

    Raises: ModelError — it is missing or does not.
    """
    value = fields.positive(name, int)
    if heads % value:
        raise fields.fail(name, f"{value} does not divide {heads} heads")
    return value


def tapped_layers(fields: ConfigFields, name: str, target: DecoderConfig) -> tuple[int, ...]:
    """Return the target's layers that a drafter reads.

    Raises: ModelError — they are missing, not ascending, or not the target's.
    """
    taps = whole_numbers(fields, name)
    if not taps or list(taps) != sorted(set(taps)) or not 0 <= taps[0] <= taps[-1] < target.layers:
        raise fields.fail(name, f"{list(taps)} are not ascending layers of {target.layers}")
    return taps


def mask_token(fields: ConfigFields, name: str, target: DecoderConfig) -> int:
    """Return the id in the places to fill; it may lie above the tokenizer's.

    Raises: ModelError — it is missing or has no row in the target's embedding.
    """
    token = fields.require(name, int)
    if not 0 <= token < target.vocab_rows:
        raise fields.fail(name, f"{token} is not a row of the embedding")
    return token


def conv_group(fields: ConfigFields, name: str, target: DecoderConfig) -> int:
    """Return how many channels share a tap.

    Raises: ModelError — it is missing or does not divide the channels.
    """
    group = fields.positive(name, int)
    if target.hidden % group:
        raise fields.fail(name, f"{group} does not divide {target.hidden} channels")
    return group
