"""The mask of a request's first position, computed while it is still on its caller's thread.

A language without a first token is the caller's error, and the worker need not compute it again.
"""

from __future__ import annotations

from ninfer.contract import (
    InvalidToolConstraint,
    OutputSession,
    RequestOptions,
    UnsatisfiableConstraint,
    mask_words,
)


def first_mask(session: OutputSession, options: RequestOptions, token_domain: int) -> bytes | None:
    """Return the first position's mask words, or None without a matcher.

    Raises: UnsatisfiableConstraint, InvalidToolConstraint — nothing can be generated.
    """
    matcher = session.matcher
    if matcher is None:
        return None
    words = mask_words(token_domain)
    buffer = bytearray(4 * words)
    report = matcher.lookahead((), memoryview(buffer).cast("i", (1, words)))
    if report.is_dead_within(1):
        if options.constraint is not None:
            raise UnsatisfiableConstraint(
                "no token can start the answer", kind=options.constraint.kind
            )
        raise InvalidToolConstraint("no token can start the answer")
    return bytes(buffer)
