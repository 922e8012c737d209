"""What the emitter writes: always the same, never what the core gets wrong, never too much."""

from __future__ import annotations

import os
import random
import re
from itertools import product

import pytest

from ninfer.text import GrammarCore, Matcher
from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.facts import sample_word
from ninfer.text.automata.minimal import minimal
from ninfer.text.automata.table import Table
from ninfer.text.automata.words import word_automaton
from ninfer.text.emitter import emit
from ninfer.text.emitter.elimination import eliminated
from ninfer.text.emitter.machine import spell_machine
from ninfer.text.emitter.pattern import whole
from ninfer.text.emitter.unfolding import unfolded
from ninfer.text.gbnf import gbnf_grammar
from ninfer.text.grammar import (
    NOTHING,
    Automaton,
    Characters,
    Concatenation,
    Grammar,
    Literal,
    Node,
    Reference,
    TokenTerminal,
    alternation,
    concatenation,
    join,
    repetition,
)
from ninfer.text.productive import without_dead_branches
from ninfer.text.regex import regex_grammar
from ninfer.text.regular import with_automata
from support.languages import Exploration, crossing_vocabulary, words
from support.masks import allowed_tokens, taken_tokens
from support.vocabularies import byte_vocabulary

ROUNDS = 2_000 if os.environ.get("NINFER_SLOW") else 150
VOCABULARY = crossing_vocabulary("ab")
CORE = GrammarCore(VOCABULARY)
TEXTS = ["".join(t) for n in range(6) for t in product("ab", repeat=n)]


def random_node(source: random.Random, depth: int, rules: list[str]) -> Node:
    choice = source.random()
    if depth == 0 or choice < 0.3:
        return source.choice(
            [
                Literal(source.choice(["a", "b", "ab", "ba", "", "aa"])),
                Characters(CharacterSet.from_text(source.choice(["a", "ab", "b"]))),
                Reference(source.choice(rules)),
            ]
        )
    parts = [random_node(source, depth - 1, rules) for _ in range(source.randint(2, 3))]
    if choice < 0.6:
        return concatenation(*parts)
    if choice < 0.85:
        return alternation(*parts)
    low = source.randint(0, 2)
    return repetition(parts[0], low, source.choice([None, low + 1, low + 2, 9]))


def random_grammars(seed: int):
    source = random.Random(seed)
    for _ in range(ROUNDS):
        names = ["x", "y", "z"][: source.randint(1, 3)]
        rules = {name: random_node(source, 3, names) for name in names}
        grammar = without_dead_branches(Grammar(Reference("x"), rules))
        if grammar.entry != NOTHING:
            yield grammar


@pytest.mark.parametrize("form", ["as written", "with automata"])
def test_random_grammars_keep_their_language(form):
    different = []
    for grammar in random_grammars(11):
        language = words(grammar, "ab", 5)
        spelled = with_automata(grammar) if form == "with automata" else grammar
        exploration = Exploration(spelled, VOCABULARY, CORE)
        different += [
            (emit(spelled), text)
            for text in TEXTS
            if exploration.accepts(text) != (text in language)
        ]
    assert different == []


def random_automaton(source: random.Random) -> Dfa:
    if source.random() < 0.25:
        texts = {"".join(source.choices("ab", k=source.randint(0, 5))) for _ in range(8)}
        return word_automaton(sorted(texts))
    if source.random() < 0.25:
        return _counted_automaton(source)
    states, forward = source.randint(1, 7), source.random()
    rows = [
        {
            letter: min(states - 1, state + source.randint(1, 2))
            if source.random() < forward
            else source.randrange(states)
            for letter in (0, 1)
            if source.random() < 0.8
        }
        for state in range(states)
    ]
    accepting = bytearray(source.random() < 0.35 for _ in range(states))
    return minimal(Table(rows, accepting, [[(97, 97)], [(98, 98)]]))


def _counted_automaton(source: random.Random) -> Dfa:
    """Return up to n letters with the same way on behind each, as the digits of numbers have."""
    count, ends = source.randint(1, 5), source.random() < 0.5
    rows: list[dict[int, int]] = [{0: state + 1, 1: count + 1} for state in range(count)]
    rows += [{1: count + 1}, {0: count + 2}, {}]
    accepting = bytearray([ends] * (count + 1) + [source.random() < 0.5, True])
    return minimal(Table(rows, accepting, [[(97, 97)], [(98, 98)]]))


FORMS = {
    "unfolded": lambda dfa: _expression(unfolded(dfa)),
    "eliminated": lambda dfa: _expression(eliminated(dfa)),
    "machine": lambda dfa: "".join(
        f"{name} ::= ({body}) (= [])\n" for name, body in spell_machine(dfa, "x")
    ),
}


def _expression(pattern):
    if pattern is None or not pattern.text:
        return None
    return f'x ::= Regex("{whole(pattern)}") (= [])\n'


@pytest.mark.parametrize("form", FORMS)
def test_random_automata_keep_their_language_in_every_form(form):
    source = random.Random(12)
    different, tried = [], 0
    for _ in range(ROUNDS):
        dfa = random_automaton(source)
        spelled = None if dfa.is_empty else FORMS[form](dfa)
        if spelled is None:
            continue
        tried += 1
        exploration = Exploration(None, VOCABULARY, CORE, text="root ::= x\n" + spelled)
        different += [
            (spelled, text) for text in TEXTS if exploration.accepts(text) != dfa.accepts(text)
        ]
    assert tried > ROUNDS / 5
    assert different == []


def test_equal_grammars_give_equal_texts():
    for grammar in random_grammars(13):
        copy = Grammar(grammar.entry, dict(reversed(grammar.rules.items())))
        assert emit(copy) == emit(grammar)


def test_the_entry_is_never_called():
    for grammar in random_grammars(14):
        assert not re.search(r"::=.*\broot\b", emit(grammar))


def test_any_rule_name_is_written_so_that_the_core_reads_it():
    names = ["root", "Token", "Regex", "a b", "é", "1x", "x-y", "x.y", "x_y", "_", "", "q", "g"]
    rules = {name: Literal(str(n)) for n, name in enumerate(names)}
    entry = Concatenation(tuple(map(Reference, names)))
    exploration = Exploration(Grammar(entry, rules), byte_vocabulary())
    assert exploration.accepts("".join(str(n) for n in range(len(names))))


def test_names_of_parts_and_machines_never_meet_names_of_rules():
    source = random.Random(6)
    names = ["q", "q-1", "q--1", "q__0", "root", "root-1", "root_1"]
    machines = [random_automaton(source) for _ in range(60)]
    machines = [dfa for dfa in machines if not dfa.is_empty and dfa.state_count > 3]
    rules = {
        name: concatenation(Literal(name), repetition(Automaton(dfa), 1, 2), Literal("."))
        for name, dfa in zip(names, machines, strict=False)
    }
    grammar = Grammar(concatenation(*map(Reference, names)), rules)
    lines = emit(grammar).splitlines()
    assert len({line.split(" ::= ")[0] for line in lines}) == len(lines)
    exploration = Exploration(grammar, byte_vocabulary())
    words = [sample_word(dfa, source) for dfa in machines]
    text = "".join(f"{name}{word}." for name, word in zip(names, words, strict=False))
    assert exploration.accepts(text)
    assert not exploration.accepts(text.replace("q__0", "q--0"))


def test_nul_and_neighbours_are_themselves_everywhere():
    vocabulary = byte_vocabulary()
    bodies = {
        "\0": Literal("\0"),
        "a\0b": concatenation(Literal("a\0"), Literal("b")),
        "\0\0\0": repetition(Literal("\0"), 3, 3),
        "a\0": concatenation(Literal("a"), Characters(CharacterSet.single(0))),
        "\x01\0": repetition(Characters(CharacterSet.of([(0, 1)])), 2, 2),
    }
    for text, body in bodies.items():
        exploration = Exploration(Grammar(body), vocabulary)
        assert exploration.accepts(text)
        assert not exploration.accepts(text.replace("\0", ""))
        assert not exploration.accepts(text.replace("\0", "0"))


def test_every_character_of_the_first_planes_is_spelled_exactly():
    vocabulary = byte_vocabulary()
    probes = [
        *map(chr, {*range(0x180)}.difference(b"xy")),
        "\u2028",
        "\ud7ff",
        "\ue000",
        "\uffff",
        "\U0010ffff",
    ]
    for character in probes:
        forms = [
            Literal(character),
            concatenation(Literal("x"), Literal(character)),
            Automaton(word_automaton(sorted({character, "xy"}))),
            repetition(Characters(CharacterSet.from_text(character + "x")), 2, 40),
        ]
        taken = [
            [p for p in (character, "x" + character, character * 2) if e.accepts(p)]
            for e in (Exploration(Grammar(form), vocabulary) for form in forms)
        ]
        double = ["x" + character, character * 2]
        assert taken == [[character], double[:1], [character], double], ascii(character)


def test_no_class_lets_bytes_through_that_are_no_text():
    vocabulary = byte_vocabulary()
    everything = ~CharacterSet()
    for body in (
        repetition(Characters(everything), 1, 3),
        repetition(Characters(everything), 1, None),
        repetition(Characters(everything - CharacterSet.from_text('"')), 1, 50),
        concatenation(
            repetition(Characters(everything - CharacterSet.from_text('"')), 1, 50), Literal('"')
        ),
        regex_grammar("[^a]*b?").entry,
    ):
        exploration = Exploration(Grammar(body), vocabulary)
        surrogates = "\ud800 \udbff \udc00 \udfff".encode("utf-8", "surrogatepass").split()
        overlong = [b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf"]
        beyond = [b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\x80", b"\xff"]
        assert [b for b in surrogates + overlong + beyond if exploration.takes(b)] == []
        assert exploration.takes("\ud7ff\ue000\U0010ffff".encode())


def test_finite_sets_never_become_flat_alternatives():
    text = emit(Grammar(alternation(*(Literal(f"value {n}") for n in range(500)))))
    assert text.count("|") < 100


@pytest.mark.parametrize(("high", "longest"), [(64, 1_000), (300, 4_000), (8_000, 300_000)])
def test_bounded_repetitions_stay_linear(high, longest):
    letters = Characters(CharacterSet.of([(97, 122)]))
    assert len(emit(Grammar(repetition(letters, 1, high)))) < longest
    closed = concatenation(Literal('"'), repetition(letters, 1, high), Literal('"'))
    assert len(emit(Grammar(closed))) < 300


def test_what_may_follow_is_written_where_it_is_known():
    grammar = gbnf_grammar('root ::= "{" x "," x "}"\nx ::= y y\ny ::= "a"+', None)
    lines = dict(line.split(" ::= ") for line in emit(grammar).splitlines())
    assert lines["x"].endswith("(= [,}])")
    assert lines["y"].endswith("(= [,a}])")
    token = Grammar(concatenation(Reference("x"), TokenTerminal((1,))), {"x": Literal("a")})
    assert "(=" not in emit(token)


@pytest.mark.parametrize(
    "middle",
    [
        "word opt",
        "word opt opt",
        'word opt | "k" opt',
        '"" | word mid',
        "word",
        "word{1,3} opt",
        'word "é" | word opt',
    ],
)
def test_what_may_follow_elsewhere_never_opens_a_mask(middle):
    """Tokens that end inside a character are tried against what follows here."""
    crossing = ["xé", "x中", "x?", "xx中", "x)", "é", "中", "x?é"]
    cut = [b"x\xc3", b"x\xe4", b"x\xe4\xb8", b"xx\xe4", b"?\xc3", b"x?\xe4\xb8"]
    vocabulary = byte_vocabulary(*(text.encode() for text in crossing), *cut)
    core = GrammarCore(vocabulary)
    source = (
        'root ::= "a" mid "é" | "b" mid "中" | "d" mid ("é" | "中")\n'
        f'mid ::= {middle} | "(" mid ")"\n'
        'opt ::= "" | "?" opt "!"\n'
        'word ::= "x" ([x-z] | [pq]+ "z")*\n'
    )
    compiled = core.compile(emit(with_automata(gbnf_grammar(source, vocabulary))))
    for beginning in product("abd", ["", "x", "(", "(x", "x?"]):
        matcher = Matcher(compiled)
        text = "".join(beginning).encode()
        if matcher.feed(text) == len(text):
            different = allowed_tokens(matcher) ^ taken_tokens(matcher)
            assert [vocabulary.pieces[token] for token in different] == [], text


def test_a_loop_that_few_places_call_has_a_production_for_each():
    loop = regex_grammar('"([a-y]|z[a-z])*"').entry
    places = (Literal("a"), Reference("s"), Literal("b"), Reference("s"), Literal("c"))
    body = concatenation(*places, Reference("s"))
    text = emit(Grammar(Reference("x"), {"x": body, "s": loop}))
    loops = [line for line in text.splitlines() if "Regex(" in line]
    assert len(loops) == 3
    assert sorted(line.partition(" (= ")[2] for line in loops) == ["", "", "[])"]


def test_joined_grammars_keep_their_rules_apart():
    first = Grammar(Reference("x"), {"x": concatenation(Literal("a"), Reference("y")),
                                     "y": Literal("b")})  # fmt: skip
    second = Grammar(Reference("x"), {"x": concatenation(Literal("a"), Reference("y")),
                                      "y": Literal("c")})  # fmt: skip
    both = join([first, second, first], lambda entries: concatenation(*entries))
    assert words(both, "abc", 6) == {"abacab"}
    assert len(both.rules) == 4
