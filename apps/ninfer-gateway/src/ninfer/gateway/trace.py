"""How much choice a constraint left at every token of an answer.

Computed afterwards from the answer's own tokens and the compiled constraint, off the event loop.
"""

from __future__ import annotations

from typing import Any

from ninfer.contract import DRAFT_LIMIT, GenerationResult, OutputConstraint, mask_words
from ninfer.qwen_frontend import Frontend
from ninfer.runtime import Engine


def token_trace(
    engine: Engine, constraint: OutputConstraint | None, result: GenerationResult
) -> list[dict[str, Any]] | None:
    """Return every generated token with the number of tokens that were allowed in its place.

    ``allowed`` is None without a constraint. There is no trace of an answer that thought or called
    tools, whose language is not the constraint's alone.
    """
    frontend = engine.frontend
    if not isinstance(frontend, Frontend):
        return None
    if result.prompt.starts_in_reasoning or result.output.tool_calls:
        return None
    tokens = result.generated_token_ids
    counts = [None] * len(tokens) if constraint is None else _counts(frontend, constraint, tokens)
    pieces = (frontend.vocabulary.pieces[token] for token in tokens)
    return [
        {"text": piece.decode("utf-8", "replace"), "allowed": allowed}
        for piece, allowed in zip(pieces, counts, strict=False)
    ]


def _counts(
    frontend: Frontend, constraint: OutputConstraint, tokens: tuple[int, ...]
) -> list[int | None]:
    compiler = frontend.compiler
    matcher = compiler.matcher(compiler.compile(constraint))
    words = mask_words(frontend.vocabulary.token_domain)
    masks = memoryview(bytearray(4 * words * DRAFT_LIMIT))
    rows = masks.cast("i", (DRAFT_LIMIT, words))
    counts: list[int | None] = []
    for start in range(0, len(tokens), DRAFT_LIMIT):
        part = tokens[start : start + DRAFT_LIMIT]
        found = matcher.lookahead(part[:-1], rows)
        for position in range(found.reachable):
            row = masks[4 * words * position : 4 * words * (position + 1)]
            counts.append(int.from_bytes(row, "little").bit_count())
        if matcher.preview(part) < len(part):
            break
        matcher.commit()
    return counts
