"""Small compiled grammars over a byte vocabulary whose words cross every border on purpose."""

from __future__ import annotations

from functools import cache

from ninfer.text import CompiledGrammar, GrammarCore, Matcher
from support.vocabularies import byte_vocabulary

WORDS = (
    b"ab", b"abc", b"bc", b"]]", b"],", b"[[", b"1]", b"1,", b'"a', b'a"', "é".encode(), b"\xc3",
    b"\xa9x", "上".encode(), b"<think>", b"tr", b"true",
)  # fmt: skip
VOCABULARY = byte_vocabulary(*WORDS, eos=2, control=(b"<think>", b"<|im_start|>"), unused=2)

WORD = {word: 256 + number for number, word in enumerate(WORDS)}
CONTROL = (256 + len(WORDS), 257 + len(WORDS))
UNUSED = (258 + len(WORDS), 259 + len(WORDS))
EOS = VOCABULARY.eos_ids

EBNF = {
    "nested": 'root ::= v\nv ::= "[" (v ("," v)*)? "]" | "1" | "ab"\n',
    "letters": 'root ::= x\nx ::= [a-c]* "d"?\n',
    "text": 'root ::= "\\"" [^"\\x00-\\x1f]* "\\""\n',
    "boolean": 'root ::= "true" | "false"\n',
    # After "ab" nothing is legal, and "ac" is a word.
    "trap": 'root ::= "a" rest\nrest ::= "b" [] | "c"\n',
    "anything": "root ::= [^\\n]+\n",
    "empty": 'root ::= ""\n',
}


@cache
def core() -> GrammarCore:
    """Return the shared grammar core of the small vocabulary."""
    return GrammarCore(VOCABULARY)


@cache
def grammar(name: str) -> CompiledGrammar:
    """Return one of the small grammars, compiled once."""
    return core().compile(EBNF[name])


def matcher(name: str) -> Matcher:
    """Return a matcher at the start of one of the small grammars."""
    return Matcher(grammar(name))
