"""What we rely on in the grammar core and what we must not: third_party/xgrammar/ORIGIN.md.

A failing test here after an upgrade says which assumption of the emitter or the matcher moved.
"""

import threading
from itertools import product

import pytest

from ninfer.contract import IntegrityError
from ninfer.text import GrammarCore, Matcher
from support.grammars import CONTROL, EBNF, EOS, UNUSED, VOCABULARY, WORD, core
from support.masks import advance, allowed_tokens, masks_along, taken_tokens
from support.vocabularies import byte_vocabulary


def at(ebnf, text=b""):
    """Return a matcher of a grammar after a text."""
    matcher = Matcher(core().compile(ebnf))
    advance(matcher, text)
    return matcher


def accepts(ebnf, text):
    matcher = Matcher(core().compile(ebnf))
    return matcher.feed(text) == len(text) and matcher.can_end


@pytest.mark.parametrize("body", ['"ab" | "abc" | "b"', '("a" | "") ("bc" | "c")', '[ab] "c"?'])
def test_masks_are_exactly_the_tokens_whose_bytes_may_follow(body):
    ebnf = f"root ::= {body}\n"
    alphabet = [bytes(w) for n in range(5) for w in product(b"abc", repeat=n)]
    words = [w for w in alphabet if accepts(ebnf, w)]
    prefixes = {w[:n] for w in words for n in range(len(w) + 1)}
    for prefix in sorted(prefixes):
        expected = {
            token
            for token, piece in enumerate(VOCABULARY.pieces)
            if VOCABULARY.classes[token] == 0 and prefix + piece in prefixes
        }
        expected |= set(EOS) if prefix in words else set()
        assert allowed_tokens(at(ebnf, prefix)) == expected


def test_masks_and_acceptance_agree_for_every_token():
    for name, text in [("nested", b"[[1,"), ("text", b'"a\xc3'), ("letters", b"abc")]:
        allowed = allowed_tokens(at(EBNF[name], text))
        for token in range(VOCABULARY.token_domain):
            assert at(EBNF[name], text).preview([token]) == (token in allowed)


def test_control_and_unused_ids_are_impossible_and_ends_are_explicit():
    free = at("root ::= [^]*\n")
    assert allowed_tokens(free).isdisjoint({*CONTROL, *UNUSED})
    assert allowed_tokens(free) >= set(EOS)


def test_a_control_tokens_spelling_can_be_written_by_ordinary_tokens():
    matcher = at('root ::= "<think>"\n')
    assert WORD[b"<think>"] in allowed_tokens(matcher)
    advance(matcher, b"<think>")
    assert allowed_tokens(matcher) == set(EOS)


def test_a_recursive_root_loses_tokens_and_a_wrapper_keeps_them():
    body = '"[" (V ("," V)*)? "]" | "1"'
    bare = at(f"root ::= {body.replace('V', 'root')}\n", b"[[")
    wrapped = at(f"root ::= v\nv ::= {body.replace('V', 'v')}\n", b"[[")
    lost = allowed_tokens(wrapped) - allowed_tokens(bare)
    assert WORD[b"]]"] in lost
    assert bare.preview([WORD[b"]]"]]) == 1


def test_escapes_of_fixed_width_are_exact_and_short_ones_swallow():
    assert accepts('root ::= "\\u0041b"\n', b"Ab")
    assert accepts('root ::= "\\U0001f600"\n', "\U0001f600".encode())
    assert not accepts('root ::= "\\x41b"\n', b"Ab")


def test_a_literal_refuses_its_nul_and_a_class_does_not():
    assert not accepts('root ::= "a\\x00b"\n', b"a\x00b")
    assert accepts('root ::= "a" [\\u0000] "b"\n', b"a\x00b")


def test_negated_classes_take_surrogates_and_positive_ones_do_not():
    surrogate = b"\xed\xa0\x80"
    assert accepts("root ::= [^a]\n", surrogate)
    assert not accepts("root ::= [\\u0000-\\ud7ff\\ue000-\\U0010ffff]\n", surrogate)
    assert accepts("root ::= [\\u0000-\\ud7ff\\ue000-\\U0010ffff]\n", "\U0010ffff".encode())


def test_an_empty_class_is_a_dead_end_and_compiles():
    found, _ = masks_along(at('root ::= "a" []\n'), b"a")
    assert found.dead_ends == 0b10


def test_token_terminals_match_by_identity():
    matcher = at(f'root ::= Token({WORD[b"ab"]}) | "c"\n')
    assert allowed_tokens(matcher) == {WORD[b"ab"], ord("c")}


@pytest.mark.parametrize("token", [*CONTROL, EOS[0]])
def test_token_terminals_of_other_than_text_are_dead_ends(token):
    assert allowed_tokens(at(f"root ::= Token({token})\n")) == frozenset()


@pytest.mark.parametrize(
    "ebnf", ["root ::= (", "root ::= missing\n", 'other ::= "a"\n', 'root ::= "\\q"\n', ""]
)
def test_text_the_core_refuses_is_our_fault_and_said_so(ebnf):
    with pytest.raises(IntegrityError, match="emitted grammar is refused"):
        core().compile(ebnf)


def test_a_refused_string_leaves_the_position():
    matcher = at(EBNF["nested"], b"[1")
    before = allowed_tokens(matcher)
    assert matcher.feed(b"1x") == 0
    assert allowed_tokens(matcher) == before


def test_refusals_print_nothing(capfd):
    matcher = at(EBNF["boolean"])
    masks_along(matcher, [*CONTROL, -1, 1 << 40, EOS[0]])
    matcher.preview([WORD[b"true"], EOS[0], EOS[1], ord("x")])
    assert capfd.readouterr() == ("", "")


def test_the_rule_cache_stays_within_its_budget():
    small = GrammarCore(byte_vocabulary(*WORD), rule_cache_bytes=20_000)
    for number in range(200):
        grammar = small.compile(f'root ::= "{number}" x\nx ::= [a-m{number % 10}]* "{number}"\n')
        masks_along(Matcher(grammar), str(number).encode())
    assert small.rule_cache_bytes <= 40_000


def test_two_threads_may_compile_at_once():
    shared, grammars = core(), {}

    def work(number):
        for turn in range(25):
            text = f'root ::= "{number}-{turn}" [a-z]*\n'
            grammars[number, turn] = shared.compile(text)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (number, turn), grammar in grammars.items():
        text = f"{number}-{turn}abc".encode()
        assert Matcher(grammar).feed(text) == len(text)


def test_a_grammar_outlives_its_compiler_and_a_matcher_its_grammar():
    own = GrammarCore(VOCABULARY)
    matcher = Matcher(own.compile('root ::= "abc"\n'))
    del own
    advance(matcher, b"abc")
    assert allowed_tokens(matcher) == set(EOS)


@pytest.mark.parametrize(
    ("middle", "is_believed"),
    [
        ("p opt", True),
        ('"" | p m', True),
        ('"x" | "m" p', False),
        ("p", False),
        ("p{1,3} opt", False),
        ('"k" p opt | p opt', False),
    ],
)
def test_a_lookahead_is_believed_where_a_rule_is_called_once_with_something_behind(
    middle, is_believed
):
    vocabulary = byte_vocabulary(b"x}", b"x]", b"x\xc3", b"xq")
    text = (
        'root ::= "a" m "}" | "b" m "]"\n'
        f"m ::= {middle}\n"
        'opt ::= "" | "?" opt\n'
        'p ::= Regex("[x-z][x-z]*") (= [}\\u005d\\u00e9?] ["])\n'
    )
    matcher = Matcher(GrammarCore(vocabulary).compile(text))
    advance(matcher, b"am" if '"m"' in middle else b"a")
    assert (allowed_tokens(matcher) != taken_tokens(matcher)) is is_believed
