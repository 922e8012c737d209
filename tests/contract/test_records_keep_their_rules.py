"""The vocabulary's own rules: ranges, row rules, positions, locations, classes."""

import math

import pytest

from ninfer.contract import (
    CommitDecision,
    EngineOptions,
    InvalidOption,
    InvalidTokenReference,
    JsonPointer,
    Lookahead,
    OptionPath,
    OutputConstraint,
    PositionState,
    SamplingOverrides,
    SamplingParameters,
    TextPosition,
    TokenClass,
    TokenVocabulary,
    mask_bit,
    mask_words,
    preset_for,
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 2.1),
        ("temperature", math.nan),
        ("top_p", -0.1),
        ("min_p", math.inf),
        ("presence_penalty", 2.5),
        ("frequency_penalty", -2.5),
        ("top_k", -1),
        ("seed", 1 << 64),
        ("seed", -1),
        ("temperature", "1"),
        ("temperature", None),
        ("top_p", 1j),
        ("min_p", 10**400),
        ("top_k", 1.5),
        ("top_k", "20"),
        ("seed", 1.0),
    ],
)
def test_a_sampling_value_out_of_range_is_named(field, value):
    with pytest.raises(InvalidOption) as caught:
        SamplingParameters(**{field: value})
    assert caught.value.location == OptionPath(field)


@pytest.mark.parametrize(("asked", "kept"), [(0, 20), (1, 1), (19, 19), (20, 20), (50, 20)])
def test_top_k_is_capped_at_twenty(asked, kept):
    assert SamplingParameters(top_k=asked).candidate_limit == kept


def test_overrides_replace_only_what_is_set():
    resolved = SamplingOverrides(temperature=0.0, seed=7).resolve(
        preset_for(thinking=False, structured=False)
    )
    assert (resolved.temperature, resolved.seed, resolved.presence_penalty) == (0.0, 7, 1.5)
    assert preset_for(thinking=False, structured=True).presence_penalty == 0.0


@pytest.mark.parametrize(
    ("decision", "produced", "valid"),
    [
        (CommitDecision(3), 3, True),
        (CommitDecision(2), 3, False),
        (CommitDecision(2, terminal=True), 3, True),
        (CommitDecision(0, terminal=True), 3, False),
        (CommitDecision(4, terminal=True), 3, False),
        (CommitDecision(0, cancelled=True), 3, True),
        (CommitDecision(1, cancelled=True), 3, False),
        (CommitDecision(0, failed=True), 0, True),
        (CommitDecision(1, failed=True), 1, False),
        (CommitDecision(0), 0, False),
    ],
)
def test_commit_decisions_obey_the_row_rules(decision, produced, valid):
    assert decision.is_valid_for(produced) is valid


def test_lookahead_names_the_state_of_every_position():
    found = Lookahead(positions=4, reachable=3, dead_ends=0b100, filled=3)
    states = [found.state(i) for i in range(4)]
    assert states == [
        PositionState.READY,
        PositionState.READY,
        PositionState.DEAD_END,
        PositionState.UNREACHABLE,
    ]
    assert not found.is_dead_within(2)
    assert found.is_dead_within(3)


def test_mask_words_hold_the_whole_domain():
    assert [mask_words(v) for v in (1, 32, 33, 248_077)] == [1, 1, 2, 7753]
    assert mask_bit(33) == (1, 2)


@pytest.mark.parametrize("tokens", [(), ("a/b~c", "not"), ("", "0")])
def test_json_pointers_read_back_what_they_print(tokens):
    assert JsonPointer.parse(str(JsonPointer(tokens))) == JsonPointer(tokens)


def test_text_positions_count_from_one():
    assert TextPosition.of_offset("ab\ncd", 4) == TextPosition(2, 2)
    assert TextPosition.of_offset("ab\ncd", 0) == TextPosition(1, 1)


@pytest.mark.parametrize(
    "named",
    [{"eos": [-1]}, {"eos": [3]}, {"eos": [2], "control": [-3]}, {"eos": [2], "control": [3]}],
)
def test_a_vocabulary_refuses_ids_that_it_does_not_have(named):
    with pytest.raises(ValueError, match="outside the domain of 3"):
        TokenVocabulary.build([b"a", b"b", b"</s>"], **named)


def test_a_vocabulary_refuses_unknown_classes():
    with pytest.raises(ValueError, match="7 is no class"):
        TokenVocabulary((b"a", b"b", b"</s>"), bytes([0, 7, TokenClass.EOS]))


def test_one_string_is_no_list_of_choices():
    with pytest.raises(TypeError, match="choice"):
        OutputConstraint.choice("yes")


def test_a_vocabulary_refuses_text_without_bytes_and_missing_eos():
    with pytest.raises(ValueError, match="TEXT but has no bytes"):
        TokenVocabulary((b"a", b""), bytes([TokenClass.TEXT, TokenClass.TEXT]))
    with pytest.raises(ValueError, match="no id is EOS"):
        TokenVocabulary.build([b"a"], eos=[])
    vocabulary = TokenVocabulary.build([b"a", b"", b"</s>", b"<x>"], eos=[2], control=[3])
    assert vocabulary.eos_ids == (2,)
    vocabulary.require_text(0)
    for token in (1, 2, 3, 4, -1):
        with pytest.raises(InvalidTokenReference):
            vocabulary.require_text(token)


@pytest.mark.parametrize(
    "options",
    [
        {"max_concurrency": 0},
        {"max_concurrency": 9},
        {"max_pending_requests": -1},
        {"max_context": 0},
        {"grammar_cache_bytes": -1},
    ],
)
def test_engine_options_out_of_range_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        EngineOptions(**options)
