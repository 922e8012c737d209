"""Languages by enumeration, and what a matcher really allows at every place of them.

The enumeration shares nothing with the emitter: it computes sets of words from grammar nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise, product

from ninfer.contract import TokenVocabulary, mask_words
from ninfer.text import GrammarCore, Matcher
from ninfer.text.automata.dfa import Dfa
from ninfer.text.emitter import emit
from ninfer.text.grammar import (
    Alternation,
    Automaton,
    Characters,
    Concatenation,
    Grammar,
    Literal,
    Node,
    Reference,
    Repetition,
)


def crossing_vocabulary(alphabet: str) -> TokenVocabulary:
    """Return every byte of an alphabet, all pairs and some triples of characters, cut UTF-8, EOS.

    One token per character pair crosses every border between two characters; tokens that end or
    begin inside a character are there for each character of several bytes.
    """
    pieces: dict[bytes, None] = {}
    for character in alphabet:
        encoded = character.encode()
        pieces.update((bytes([b]), None) for b in encoded)
        pieces[encoded] = None
        if len(encoded) > 1:
            for neighbour in alphabet[:2]:
                pieces[encoded[1:] + neighbour.encode()] = None
                pieces[neighbour.encode() + encoded[:1]] = None
    pieces.update(("".join(pair).encode(), None) for pair in product(alphabet, repeat=2))
    pieces.update(((a + b + a).encode(), None) for a, b in pairwise(alphabet))
    pieces.update((character.encode() * 3, None) for character in alphabet[:2])
    return TokenVocabulary.build([*pieces, b"</s>"], eos=[len(pieces)])


def spellable(vocabulary: TokenVocabulary) -> str:
    """Return every character that the single bytes of a vocabulary can spell together."""
    single = [piece for piece in vocabulary.pieces if len(piece) == 1]
    tails = [piece for piece in single if 0x80 <= piece[0] < 0xC0]
    found = []
    for lead in single:
        length = 1 if lead[0] < 0x80 else 2 if lead[0] < 0xE0 else 3 if lead[0] < 0xF0 else 4
        for rest in product(tails, repeat=length - 1):
            with suppress(UnicodeDecodeError):
                found.append(b"".join((lead, *rest)).decode())
    return "".join(found)


def words(grammar: Grammar, alphabet: str, limit: int) -> set[str]:
    """Return the words of at most ``limit`` characters over an alphabet, as a least fixed point."""
    known: dict[str, frozenset[str]] = dict.fromkeys(grammar.rules, frozenset())
    while True:
        found = {n: _words(b, known, alphabet, limit) for n, b in grammar.rules.items()}
        if found == known:
            return set(_words(grammar.entry, known, alphabet, limit))
        known = found


def _words(
    node: Node, known: dict[str, frozenset[str]], alphabet: str, limit: int
) -> frozenset[str]:
    match node:
        case Literal(text):
            return frozenset({text} if len(text) <= limit else ())
        case Characters(members):
            return frozenset(c for c in alphabet if ord(c) in members)
        case Concatenation(items):
            whole = frozenset({""})
            for item in items:
                whole = _joined(whole, _words(item, known, alphabet, limit), limit)
            return whole
        case Alternation(options):
            return frozenset().union(*(_words(o, known, alphabet, limit) for o in options))
        case Repetition(item, low, high):
            return _repeated(_words(item, known, alphabet, limit), low, high, limit)
        case Reference(rule):
            return known[rule]
        case Automaton(dfa):
            return frozenset(automaton_words(dfa, alphabet, limit))
    raise TypeError(f"no words of {node}")


def automaton_words(dfa: Dfa, alphabet: str, limit: int) -> Iterable[str]:
    """Yield an automaton's words of at most ``limit`` characters over an alphabet."""
    layer = [("", 0)]
    for _ in range(limit + 1):
        yield from (text for text, state in layer if dfa.accepting[state])
        steps = ((t + c, dfa.step(s, ord(c))) for t, s in layer for c in alphabet)
        layer = [(text, state) for text, state in steps if state is not None]


def _joined(first: frozenset[str], second: frozenset[str], limit: int) -> frozenset[str]:
    return frozenset(a + b for a in first for b in second if len(a) + len(b) <= limit)


def _repeated(once: frozenset[str], low: int, high: int | None, limit: int) -> frozenset[str]:
    result: frozenset[str] = frozenset()
    power = frozenset({""})
    copies = 0
    while power and (high is None or copies <= high):
        if copies >= low:
            if power <= result and copies > limit:
                break
            result |= power
        power = _joined(power, once, limit)
        copies += 1
        if copies > low + limit + 1:
            break
    return result


class Exploration:
    """Every place a matcher can be at, by the bytes that led there."""

    def __init__(
        self,
        grammar: Grammar | None,
        vocabulary: TokenVocabulary,
        core: GrammarCore | None = None,
        text: str = "",
    ) -> None:
        self.vocabulary = vocabulary
        spelled = text if grammar is None else emit(grammar)
        self.compiled = (core or GrammarCore(vocabulary)).compile(spelled)

    def differences(self, whole_words: set[str], characters: int) -> list[str]:
        """Return where masks and language disagree, for prefixes of up to ``characters``.

        ``whole_words`` must complete every prefix of one token more than that.
        """
        encoded = {word.encode() for word in whole_words}
        viable = {word[:n] for word in encoded for n in range(len(word) + 1)}
        found: list[str] = []
        seen = {b""}
        pending: list[tuple[bytes, list[int]]] = [(b"", [])]
        while pending and len(found) < 10:
            prefix, path = pending.pop()
            wanted = self._wanted(prefix, encoded, viable)
            allowed = self.allowed(path)
            if allowed != wanted:
                found.append(
                    f"after {prefix!r}: not offered {self._pieces(wanted - allowed)}, "
                    f"offered wrongly {self._pieces(allowed - wanted)}"
                )
            for token in wanted.difference(self.vocabulary.eos_ids):
                longer = prefix + self.vocabulary.pieces[token]
                if longer not in seen and len(longer.decode(errors="ignore")) <= characters:
                    seen.add(longer)
                    pending.append((longer, [*path, token]))
        return found

    def _wanted(self, prefix: bytes, encoded: set[bytes], viable: set[bytes]) -> set[int]:
        ends = self.vocabulary.eos_ids
        pieces = enumerate(self.vocabulary.pieces)
        wanted = {t for t, piece in pieces if t not in ends and prefix + piece in viable}
        return wanted.union(ends) if prefix in encoded else wanted

    def allowed(self, path: Sequence[int]) -> set[int]:
        """Return the tokens a new matcher offers after a path."""
        matcher = Matcher(self.compiled)
        taken = matcher.preview(path)
        matcher.commit()
        if taken != len(path):
            return set()
        count = mask_words(self.vocabulary.token_domain)
        mask = memoryview(bytearray(4 * count)).cast("i", (1, count))
        if matcher.lookahead((), mask).dead_ends:
            return set()
        bits = int.from_bytes(mask.tobytes(), "little")
        return {token for token in range(self.vocabulary.token_domain) if bits >> token & 1}

    def accepts(self, text: str) -> bool:
        """Return whether a text is taken byte by byte and may end there."""
        matcher = Matcher(self.compiled)
        encoded = text.encode()
        return matcher.feed(encoded) == len(encoded) and matcher.can_end

    def takes(self, encoded: bytes) -> bool:
        """Return whether bytes are taken from the start."""
        return Matcher(self.compiled).feed(encoded) == len(encoded)

    def _pieces(self, tokens: Iterable[int]) -> list[bytes]:
        return sorted(self.vocabulary.pieces[token] for token in tokens)[:8]
