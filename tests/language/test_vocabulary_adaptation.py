"""Tokenizers to raw bytes and classes: what an id spells, and what it may never be."""

import pytest

from ninfer.contract import InvalidTokenReference, ModelError, TokenClass
from ninfer.text import GrammarCore, Matcher, vocabulary_from_tokenizer
from support.masks import advance, allowed_tokens
from support.vocabularies import (
    QWEN_PLAIN_ADDED,
    QWEN_SPECIAL_TOKENS,
    qwen_ranks,
    qwen_tokenizer,
    qwen_vocabulary,
)

tokenizers = pytest.importorskip("tokenizers")


def byte_level(*words, special=(), plain=()):
    """Return a byte-level tokenizer whose ids are the words in order, then the added tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models

    tokenizer = Tokenizer(models.BPE(vocab={w: i for i, w in enumerate(words)}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in special])
    tokenizer.add_tokens([AddedToken(text, special=False) for text in plain])
    return tokenizer


def sentence_piece(*words, special=()):
    """Return a tokenizer with SentencePiece spellings and byte fallback."""
    from tokenizers import AddedToken, Tokenizer, decoders, models

    vocab = {w: i for i, w in enumerate(words)}
    tokenizer = Tokenizer(
        models.BPE(vocab=vocab, merges=[], byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    )
    steps = [
        decoders.Replace("▁", " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Strip(" ", 1, 0),
    ]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in special])
    return tokenizer


def test_byte_level_characters_are_bytes():
    tokenizer = byte_level("a", "Ġa", "Ċ", "Ã©", "ä¸", "ł", "Ā", special=["<end>"])
    found = vocabulary_from_tokenizer(tokenizer, eos_ids=[7])
    assert found.pieces == (
        b"a", b" a", b"\n", "é".encode(), b"\xe4\xb8", b"\xa0", b"\x00", b"<end>",
    )  # fmt: skip


def test_every_byte_has_exactly_one_character():
    from tokenizers.pre_tokenizers import ByteLevel

    letters = sorted(ByteLevel.alphabet())
    found = vocabulary_from_tokenizer(byte_level(*letters, special=["</s>"]), eos_ids=[256])
    assert sorted(found.pieces[:256]) == [bytes([byte]) for byte in range(256)]


def test_a_byte_level_token_with_a_foreign_character_is_spelled_as_the_decoder_writes_it():
    tokenizer = byte_level("a b", "上", "x", special=["</s>"])
    found = vocabulary_from_tokenizer(tokenizer, eos_ids=[3])
    assert found.pieces[:3] == (b"a b", "上".encode(), b"x")
    for token in range(3):
        assert tokenizer.decode([token]).encode() == found.pieces[token]


def test_sentence_piece_marks_are_blanks_and_byte_tokens_are_bytes():
    words = ["<unk>", "<0x0A>", "<0xE4>", "▁Hello", "a▁b", "<0xZZ>", "上"]
    tokenizer = sentence_piece(*words, special=["<s>", "</s>"])
    found = vocabulary_from_tokenizer(tokenizer, eos_ids=[8])
    assert found.pieces[1:7] == (b"\n", b"\xe4", b" Hello", b"a b", b"<0xZZ>", "上".encode())
    assert [TokenClass(c).name for c in found.classes] == [
        "CONTROL", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "CONTROL", "EOS",
    ]  # fmt: skip


def test_byte_tokens_are_bytes_only_where_the_decoder_reads_them_so():
    from tokenizers import decoders

    words = ["<0x0A>", "<0x0a>", "<0x  >", "<0x 1>", "<0x1>", "▁<0x0A>"]
    tokenizer = sentence_piece(*words, special=["</s>"])
    found = vocabulary_from_tokenizer(tokenizer, eos_ids=[6])
    assert found.pieces[:6] == (b"\n", b"\n", b"<0x  >", b"<0x 1>", b"<0x1>", b" <0x0A>")
    tokenizer.decoder = decoders.Metaspace()
    found = vocabulary_from_tokenizer(tokenizer, eos_ids=[6])
    assert found.pieces[:2] == (b"<0x0A>", b"<0x0a>")
    for token in range(6):
        decoded = tokenizer.decode([4, token]).removeprefix("<0x1>")
        assert decoded.encode() == found.pieces[token]


@pytest.mark.parametrize("unknown", [None, 0, 2])
def test_the_unknown_token_of_a_unigram_model_is_no_text(unknown):
    from tokenizers import Tokenizer, decoders, models

    pieces = [("<unk>", 0.0), ("▁a", -1.0), ("?", -2.0), ("</s>", -3.0)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=unknown))
    tokenizer.decoder = decoders.Metaspace()
    found = vocabulary_from_tokenizer(tokenizer, eos_ids=[3])
    controls = [i for i, c in enumerate(found.classes) if c == TokenClass.CONTROL]
    assert controls == ([] if unknown is None else [unknown])


def test_added_tokens_are_text_or_control_by_their_flag_and_spelled_as_they_stand():
    tokenizer = byte_level("a", special=["<|im_end|>", "<|vision|>"], plain=["<tool Ġ>"])
    found = vocabulary_from_tokenizer(tokenizer, eos_ids=[1])
    assert found.pieces[2:] == (b"<|vision|>", "<tool Ġ>".encode())
    assert list(found.classes) == [
        TokenClass.TEXT, TokenClass.EOS, TokenClass.CONTROL, TokenClass.TEXT,
    ]  # fmt: skip


def test_ids_without_a_token_are_unused_up_to_the_domain():
    found = vocabulary_from_tokenizer(byte_level("a", special=["</s>"]), eos_ids=[1], domain=40)
    assert found.token_domain == 40
    assert set(found.classes[2:]) == {TokenClass.UNUSED}
    with pytest.raises(InvalidTokenReference):
        found.require_text(2)


def test_a_wrapped_tokenizer_brings_its_own_end():
    class Wrapped:
        backend_tokenizer = byte_level("a", special=["</s>"])
        eos_token_id = 1

    assert vocabulary_from_tokenizer(Wrapped()).eos_ids == (1,)
    assert vocabulary_from_tokenizer(Wrapped(), eos_ids=[0]).eos_ids == (0,)


def test_a_transformers_tokenizer_is_read_like_its_backend():
    transformers = pytest.importorskip("transformers")
    backend = byte_level("a", "Ġb", special=["</s>"])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>")
    assert vocabulary_from_tokenizer(fast) == vocabulary_from_tokenizer(backend, eos_ids=[2])


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({}, "names no EOS"),
        ({"eos_ids": []}, "EOS ids is empty"),
        ({"eos_ids": [9]}, "EOS 9 is outside"),
        ({"eos_ids": [1], "domain": 1}, "2 ids do not fit a token domain of 1"),
    ],
)
def test_facts_that_do_not_fit_are_refused(options, fact):
    with pytest.raises(ModelError, match=fact):
        vocabulary_from_tokenizer(byte_level("a", special=["</s>"]), **options)


def test_a_decoder_whose_bytes_are_unknown_is_refused():
    from tokenizers import decoders

    tokenizer = byte_level("a", special=["</s>"])
    tokenizer.decoder = decoders.WordPiece()
    with pytest.raises(ModelError, match="WordPiece"):
        vocabulary_from_tokenizer(tokenizer, eos_ids=[1])


def test_the_real_qwen_vocabulary_is_its_ranks_and_its_added_tokens():
    found = vocabulary_from_tokenizer(
        qwen_tokenizer(), eos_ids=qwen_vocabulary().eos_ids, domain=248_320
    )
    assert found == qwen_vocabulary()
    assert found.pieces[: len(qwen_ranks())] == tuple(qwen_ranks())
    assert found.token_domain == 248_320
    assert found.classes.count(TokenClass.UNUSED) == 243
    text = {
        t
        for t in QWEN_SPECIAL_TOKENS
        if found.classes[248_044 + QWEN_SPECIAL_TOKENS.index(t)] == TokenClass.TEXT
    }
    assert text == QWEN_PLAIN_ADDED


def test_encoded_text_is_a_path_through_its_own_bytes():
    text = 'Grüße, 上海! \u0e01\u0e33 {"a": 1}\n\n\tdef f(x):  # 👩‍👩‍👧'
    ids = qwen_tokenizer().encode(text).ids
    pieces = qwen_vocabulary().pieces
    assert b"".join(pieces[i] for i in ids) == text.encode()


def spelled(piece):
    """Return the one ordinary token of a piece."""
    return [qwen_ranks()[piece]]


@pytest.fixture(scope="module")
def qwen_core():
    return GrammarCore(qwen_vocabulary())


def test_no_end_of_the_set_is_open_before_the_value_is_complete_and_then_all_are(qwen_core):
    matcher = Matcher(qwen_core.compile('root ::= "\\"" [a-z]* "\\""\n'))
    ends = set(qwen_vocabulary().eos_ids)
    assert len(ends) == 2
    for byte in b'"ab':
        assert not allowed_tokens(matcher) & ends
        advance(matcher, spelled(bytes([byte])))
    advance(matcher, spelled(b'"'))
    assert allowed_tokens(matcher) == ends
    assert matcher.can_end


def test_free_text_never_offers_control_or_padding_ids(qwen_core):
    matcher = Matcher(qwen_core.compile("root ::= [^\\n]+\n"))
    classes = qwen_vocabulary().classes
    advance(matcher, qwen_tokenizer().encode("<|im_").ids)
    allowed = allowed_tokens(matcher)
    assert {classes[token] for token in allowed} == {TokenClass.TEXT, TokenClass.EOS}
    assert max(allowed) < 248_077


def test_a_control_tokens_spelling_is_ordinary_text(qwen_core):
    matcher = Matcher(qwen_core.compile('root ::= "<|im_end|>" | "<|vision_pad|>"\n'))
    specials = {248_044 + number for number in range(len(QWEN_SPECIAL_TOKENS))}
    for piece in (b"<", b"|", b"im", b"_end", b"|", b">"):
        assert not allowed_tokens(matcher) & specials
        advance(matcher, spelled(piece))
    assert allowed_tokens(matcher) == set(qwen_vocabulary().eos_ids)
