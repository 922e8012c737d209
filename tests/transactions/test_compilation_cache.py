"""One build a language, two builds at a time, a budget, and refusals that are remembered."""

import threading
from dataclasses import dataclass

import pytest

from ninfer.contract import (
    CacheOutcome,
    ConstraintKind,
    InvalidChoice,
    InvalidGrammar,
    JsonPointer,
    OptionPath,
    OutputConstraint,
    RequestCancelled,
    TextPosition,
    UnsatisfiableConstraint,
    UnsupportedSchema,
)
from ninfer.text import CompiledGrammar, ConstraintCompiler, Envelope
from ninfer.text.cache import ENTRY_BYTES, CompilationCache
from ninfer.text.grammar import NOTHING, Grammar, concatenation, join, literal
from support.grammars import VOCABULARY
from support.masks import advance, allowed_tokens

HIT, BUILT, WAITED = CacheOutcome.HIT, CacheOutcome.BUILT, CacheOutcome.WAITED


@dataclass
class Value:
    """A build's result whose size may change."""

    memory_bytes: int = 1000


class Builds:
    """Counts builds, and how many ran at once; each waits until it is let go."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.started = threading.Semaphore(0)
        self.release = threading.Semaphore(0)
        self.lock = threading.Lock()
        self.count = self.running = self.most = 0

    def __call__(self):
        with self.lock:
            number = self.count
            self.count += 1
            self.running += 1
            self.most = max(self.most, self.running)
        self.started.release()
        assert self.release.acquire(timeout=10)
        with self.lock:
            self.running -= 1
        outcome = self.outcomes[number] if number < len(self.outcomes) else Value()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def in_threads(*calls):
    """Start every call in a thread of its own; return a function that joins and gives results."""
    results = [None] * len(calls)

    def work(number, call):
        try:
            results[number] = call()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=work, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()

    def join():
        for thread in threads:
            thread.join(10)
        return results

    return join


def test_a_second_call_is_a_hit():
    cache = CompilationCache(1 << 20)
    value = Value()
    assert cache.get(b"k", lambda: value) == (value, BUILT)
    assert cache.get(b"k", pytest.fail) == (value, HIT)


def test_equal_keys_at_one_time_share_one_build():
    cache, builds = CompilationCache(1 << 20), Builds()
    join_all = in_threads(*[lambda: cache.get(b"k", builds)] * 5)
    assert builds.started.acquire(timeout=10)
    builds.release.release()
    results = join_all()
    assert builds.count == 1
    assert len({id(value) for value, _ in results}) == 1
    outcomes = [outcome for _, outcome in results]
    assert outcomes.count(BUILT) == 1
    assert set(outcomes) <= {BUILT, WAITED, HIT}


def test_at_most_two_builds_run_at_once_and_hits_take_no_place():
    cache, builds = CompilationCache(1 << 20), Builds()
    cache.get(b"ready", Value)
    join_all = in_threads(*[lambda k=k: cache.get(k, builds) for k in (b"a", b"b", b"c", b"d")])
    for _ in range(2):
        assert builds.started.acquire(timeout=10)
    assert not builds.started.acquire(timeout=0.05)
    assert cache.get(b"ready", pytest.fail)[1] is HIT
    for _ in range(4):
        builds.release.release()
    assert [outcome for _, outcome in join_all()] == [BUILT] * 4
    assert builds.most == 2


def test_a_waiter_of_a_refused_build_gets_the_refusal_as_an_object_of_its_own():
    refusal = UnsupportedSchema("no", keyword="not", location=JsonPointer(("a",)))
    cache, builds = CompilationCache(1 << 20), Builds(refusal)
    join_all = in_threads(*[lambda: cache.get(b"k", builds)] * 3)
    assert builds.started.acquire(timeout=10)
    builds.release.release()
    errors = join_all()
    assert builds.count == 1
    assert len({id(error) for error in errors}) == 3
    assert {(type(e), str(e), e.keyword, e.location) for e in errors} == {
        (UnsupportedSchema, "/a: no", "not", JsonPointer(("a",)))
    }


@pytest.mark.parametrize(
    "refusal",
    [
        InvalidGrammar("unclosed", location=TextPosition(2, 3), detail="log"),
        UnsatisfiableConstraint("nothing", kind=ConstraintKind.JSON_SCHEMA),
        InvalidChoice("empty", location=OptionPath("choice")),
    ],
)
def test_refusals_are_remembered_whole(refusal):
    def refuse():
        raise refusal

    cache = CompilationCache(1 << 20)
    with pytest.raises(type(refusal)):
        cache.get(b"k", refuse)
    seen = []
    for _ in range(2):
        with pytest.raises(type(refusal)) as caught:
            cache.get(b"k", pytest.fail)
        seen.append(caught.value)
    assert seen[0] is not seen[1]
    for error in seen:
        assert vars(error) == vars(refusal)
        assert (str(error), error.code) == (str(refusal), refusal.code)


@pytest.mark.parametrize("failure", [RequestCancelled("cancelled"), MemoryError()])
def test_failures_without_a_verdict_are_not_remembered_and_waiters_build_again(failure):
    cache, builds = CompilationCache(1 << 20), Builds(failure)
    join_all = in_threads(*[lambda: cache.get(b"k", builds)] * 2)
    assert builds.started.acquire(timeout=10)
    for _ in range(2):
        builds.release.release()
    results = join_all()
    assert sum(isinstance(r, type(failure)) for r in results) == 1
    assert builds.count == 2
    assert cache.get(b"k", pytest.fail)[1] is HIT


def test_the_budget_evicts_the_least_recently_used():
    cache = CompilationCache(3 * (ENTRY_BYTES + 1000))
    for key in (b"a", b"b", b"c"):
        cache.get(key, Value)
    cache.get(b"a", pytest.fail)
    cache.get(b"d", Value)
    assert [cache.get(k, pytest.fail)[1] for k in (b"a", b"c", b"d")] == [HIT] * 3
    assert cache.get(b"b", Value)[1] is BUILT


def test_a_value_that_grew_counts_with_its_new_size():
    cache = CompilationCache(11_000)
    value = Value()
    cache.get(b"a", lambda: value)
    cache.get(b"b", Value)
    value.memory_bytes = 9_000
    cache.get(b"a", pytest.fail)
    assert cache.held_bytes == 9_000 + ENTRY_BYTES
    assert cache.get(b"b", Value)[1] is BUILT


def test_a_value_larger_than_the_budget_is_given_and_not_kept():
    cache = CompilationCache(100)
    assert cache.get(b"a", Value)[1] is BUILT
    assert cache.held_bytes == 0
    assert cache.get(b"a", Value)[1] is BUILT


def compiler(**options):
    return ConstraintCompiler(VOCABULARY, **options)


def outcomes(at, *constraints, envelope=None):
    return [at.compile(constraint, envelope).cache for constraint in constraints]


def test_a_choice_is_known_by_its_set():
    at = compiler()
    choice = OutputConstraint.choice
    assert outcomes(at, choice(["a", "b"]), choice(["b", "a", "b"])) == [BUILT, HIT]


def test_the_borders_between_literals_are_part_of_the_identity():
    at = compiler()
    choice = OutputConstraint.choice
    different = [["a:b", "c"], ["a", "b:c"], ["a:b:c"], ["a", "b", "c"], ["abc"], ["ab", "c"]]
    assert outcomes(at, *map(choice, different)) == [BUILT] * len(different)


def test_kind_source_and_envelope_are_part_of_the_identity():
    at = compiler()
    text = 'root ::= "a"'
    bare = OutputConstraint.grammar(text)
    wrapped = Envelope("think", lambda g: join([g], lambda e: concatenation(literal("x"), *e)))
    assert at.compile(bare).cache is BUILT
    assert at.compile(bare, wrapped).cache is BUILT
    assert at.compile(bare, Envelope("other", wrapped.wrap)).cache is BUILT
    assert at.compile(OutputConstraint.choice([text])).cache is BUILT
    assert at.compile(OutputConstraint.grammar(text + " ")).cache is BUILT
    assert at.compile(bare, wrapped).cache is HIT
    assert allowed_tokens(at.matcher(at.compile(bare, wrapped))) == {ord("x")}


def test_a_language_key_never_meets_a_constraint():
    at = compiler()
    build = lambda: Grammar(literal("t"))  # noqa: E731
    assert at.compile_language("k", build).cache is BUILT
    assert at.compile_language("k", pytest.fail).cache is HIT
    assert at.compile(OutputConstraint.choice(["k"])).cache is BUILT


def test_a_refused_choice_names_the_place_in_its_own_order():
    at = compiler()
    for literals, place in ([["a", "\ud800"], 1], [["\ud800", "a"], 0]):
        with pytest.raises(InvalidChoice) as caught:
            at.compile(OutputConstraint.choice(literals))
        assert caught.value.location == OptionPath("choice", place)


def test_a_language_without_a_first_token_is_refused_at_preparation():
    at = compiler()
    assert at.compile_language("empty text", lambda: Grammar(literal(""))).cache is BUILT
    with pytest.raises(UnsatisfiableConstraint) as caught:
        at.compile_language("nothing", lambda: Grammar(NOTHING), ConstraintKind.JSON_SCHEMA)
    assert caught.value.code == "unsatisfiable_json_schema"


def test_the_vocabulary_is_indexed_once_by_whoever_comes_first():
    at = compiler()
    results = in_threads(
        *[lambda n=n: at.compile_language(str(n), lambda: Grammar(literal("a"))) for n in range(4)]
    )()
    assert all(isinstance(r.grammar, CompiledGrammar) for r in results), results
    assert len({id(r.grammar.index) for r in results}) == 1


def test_an_evicted_grammar_lives_on_with_its_matchers():
    at = compiler(cache_bytes=1)
    compiled = at.compile_language("a", lambda: Grammar(literal("abc")))
    assert at.cached_bytes == 0
    matcher = at.matcher(compiled)
    del compiled
    at.compile_language("b", lambda: Grammar(literal("x")))
    advance(matcher, b"abc")
    assert matcher.can_end


def test_preparation_is_timed_for_every_request():
    at = compiler()
    built, hit = (at.compile_language("a", lambda: Grammar(literal("a"))) for _ in range(2))
    assert built.prepare_seconds > hit.prepare_seconds > 0
