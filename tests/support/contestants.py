"""One walk through one language by us, by the bare core, and by llguidance.

Each contestant gets the language in the form its own documentation suggests. Times are thread CPU
time, since other work may share the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ninfer.contract import TokenVocabulary, mask_words
from ninfer.text import GrammarCore, Matcher
from ninfer.text.emitter import emit
from ninfer.text.grammar import Grammar

PASSES = 5


@dataclass(slots=True)
class Walks:
    """Seconds of one contestant: the compilation, every first mask, and the same ones again.

    Later passes count by the best time of each mask, because other work may share the machine.
    """

    compile_seconds: float = 0.0
    first: list[float] = field(default_factory=list)
    steady: list[float] = field(default_factory=list)
    refusal: str = ""

    def add_passes(self, passes: Sequence[Sequence[float]]) -> None:
        """Take the first pass as it is and the best of the others."""
        self.first = list(passes[0])
        self.steady = [min(times) for times in zip(*passes[1:], strict=True)]

    def summary(self) -> dict[str, Any]:
        """Return milliseconds and microseconds at the usual points, or why there are none."""
        if self.refusal:
            return {"refused": self.refusal}
        return {
            "compile_ms": round(self.compile_seconds * 1e3, 2),
            "first_p50_us": micros(self.first, 0.5),
            "first_p99_us": micros(self.first, 0.99),
            "steady_p50_us": micros(self.steady, 0.5),
            "steady_p99_us": micros(self.steady, 0.99),
            "masks": len(self.steady),
        }


def micros(seconds: Sequence[float], share: float) -> float:
    """Return a quantile in microseconds."""
    ordered = sorted(seconds)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e6, 1)


@cache
def token_lengths(vocabulary: TokenVocabulary) -> int:
    """Return the bytes of the longest ordinary token."""
    return max(len(piece) for t, piece in enumerate(vocabulary.pieces) if not vocabulary.classes[t])


@cache
def token_ids(vocabulary: TokenVocabulary) -> dict[bytes, int]:
    """Return the ordinary tokens by their bytes."""
    return {p: t for t, p in enumerate(vocabulary.pieces) if not vocabulary.classes[t]}


def longest_tokens(text: bytes, vocabulary: TokenVocabulary) -> list[int]:
    """Return the split of a text that always takes the longest token."""
    ids, longest = token_ids(vocabulary), token_lengths(vocabulary)
    tokens, offset = [], 0
    while offset < len(text):
        length = min(longest, len(text) - offset)
        while text[offset : offset + length] not in ids:
            length -= 1
        tokens.append(ids[text[offset : offset + length]])
        offset += length
    return tokens


def ours(core: GrammarCore, grammar: Callable[[], Grammar], texts: Sequence[bytes]) -> Walks:
    """Walk with our front end, emitter and matcher."""
    walks = Walks()
    start = time.thread_time()
    compiled = core.compile(emit(grammar()))
    walks.compile_seconds = time.thread_time() - start
    words = mask_words(core.vocabulary.token_domain)
    mask = memoryview(bytearray(4 * words)).cast("i", (1, words))
    passes: list[list[float]] = [[] for _ in range(PASSES)]
    for times in passes:
        for text in texts:
            matcher = Matcher(compiled)
            for token in [*longest_tokens(text, core.vocabulary), None]:
                start = time.thread_time()
                matcher.lookahead((), mask)
                times.append(time.thread_time() - start)
                if token is not None:
                    assert matcher.preview([token]) == 1, (text, token)
                    matcher.commit()
    walks.add_passes(passes)
    return walks


@cache
def bare_compiler(vocabulary: TokenVocabulary) -> Any:
    """Return the core's own compiler, lazy like ours."""
    import xgrammar

    pieces = [b"" if k else p for p, k in zip(vocabulary.pieces, vocabulary.classes, strict=True)]
    info = xgrammar.TokenizerInfo(
        pieces,
        vocab_type=xgrammar.VocabType.RAW,
        vocab_size=len(pieces),
        stop_token_ids=list(vocabulary.eos_ids),
    )
    return xgrammar.GrammarCompiler(info, max_threads=1, enable_dynamic_compilation=True)


def bare_core(vocabulary: TokenVocabulary, source: Any, texts: Sequence[bytes]) -> Walks:
    """Walk with the core alone; ``source`` maps its Grammar class to a grammar."""
    import xgrammar

    compiler = bare_compiler(vocabulary)
    walks = Walks()
    start = time.thread_time()
    compiled = compiler.compile_grammar(source(xgrammar.Grammar))
    walks.compile_seconds = time.thread_time() - start
    mask = xgrammar.allocate_token_bitmask(1, len(vocabulary.pieces))
    deadline = time.thread_time() + 20
    passes: list[list[float]] = [[] for _ in range(PASSES)]
    for times in passes:
        for text in texts:
            matcher = xgrammar.GrammarMatcher(compiled)
            for token in [*longest_tokens(text, vocabulary), None]:
                start = time.thread_time()
                matcher.fill_next_token_bitmask(mask)
                times.append(time.thread_time() - start)
                if time.thread_time() > deadline:
                    walks.refusal = f"over 20 s after {len(times)} masks"
                    return walks
                if token is not None:
                    assert matcher.accept_token(token), (text, token)
    walks.add_passes(passes)
    return walks


@cache
def guidance_tokenizer(vocabulary: TokenVocabulary) -> Any:
    """Return llguidance's tokenizer of a vocabulary."""
    import llguidance

    class Tokens:
        def __init__(self) -> None:
            kinds = list(zip(vocabulary.pieces, vocabulary.classes, strict=True))
            self.eos_token_id = vocabulary.eos_ids[0]
            self.bos_token_id = None
            self.tokens = [b"\xff<%d>" % t if k else p for t, (p, k) in enumerate(kinds)]
            self.special_token_ids = [t for t, (_, k) in enumerate(kinds) if k]

        def __call__(self, text: bytes | str) -> list[int]:
            data = text.encode() if isinstance(text, str) else text
            return longest_tokens(data, vocabulary)

    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokens()))


def guidance(vocabulary: TokenVocabulary, source: Any, texts: Sequence[bytes]) -> Walks:
    """Walk with llguidance; ``source`` maps its matcher class to a grammar text."""
    import llguidance
    import numpy

    tokenizer = guidance_tokenizer(vocabulary)
    walks = Walks()
    start = time.thread_time()
    grammar = source(llguidance.LLMatcher)
    matcher = llguidance.LLMatcher(tokenizer, grammar)
    walks.compile_seconds = time.thread_time() - start
    if matcher.is_error():
        walks.refusal = matcher.get_error()[:120]
        return walks
    mask = numpy.zeros(mask_words(len(vocabulary.pieces)), dtype=numpy.int32)
    passes: list[list[float]] = [[] for _ in range(PASSES)]
    for times in passes:
        for text in texts:
            walker = matcher.deep_copy()
            for token in [*longest_tokens(text, vocabulary), None]:
                start = time.thread_time()
                walker.unsafe_compute_mask_ptr(mask.ctypes.data, mask.nbytes)
                times.append(time.thread_time() - start)
                if token is not None and not walker.consume_token(token):
                    walks.refusal = walker.get_error()[:120] or f"refuses token {token}"
                    return walks
    walks.add_passes(passes)
    return walks
