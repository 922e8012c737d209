"""After any history a matcher is where a fresh one gets by the committed tokens alone."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from ninfer.contract import InvalidMask, PendingPreview
from support.grammars import EBNF, VOCABULARY, matcher
from support.masks import advance, allowed_tokens, mask_buffer, masks_along

ANY_TOKEN = st.integers(-2, VOCABULARY.token_domain + 1)


class MatcherAgainstReplay(RuleBasedStateMachine):
    """The model is the list of committed tokens; every answer comes from a matcher of its own."""

    @initialize(name=st.sampled_from(sorted(EBNF)))
    def start(self, name):
        self.name = name
        self.at = matcher(name)
        self.committed = []
        self.provisional = None

    def replay(self, *tokens):
        fresh = matcher(self.name)
        advance(fresh, [*self.committed, *tokens])
        return fresh

    def path(self, data, most):
        """Return tokens that follow the language for a while and then may not."""
        walker, tokens = self.replay(), []
        for _ in range(data.draw(st.integers(0, most))):
            legal = sorted(allowed_tokens(walker))
            token = data.draw(st.sampled_from(legal) if legal else ANY_TOKEN)
            tokens.append(token)
            walker.preview([token])
            walker.commit()
        return [*tokens, *data.draw(st.lists(ANY_TOKEN, max_size=2))]

    @precondition(lambda self: self.provisional is None)
    @rule(data=st.data())
    def look_ahead(self, data):
        drafts = self.path(data, 4)
        found, masks = masks_along(self.at, drafts)
        reached, again = masks_along(self.replay(), drafts)
        assert (found, masks) == (reached, again)

    @precondition(lambda self: self.provisional is None)
    @rule(data=st.data())
    def preview(self, data):
        tokens = self.path(data, 3)
        taken = self.at.preview(tokens)
        expected = self.replay()
        legal = 0
        while legal < len(tokens) and expected.preview(tokens[legal : legal + 1]) == 1:
            expected.commit()
            legal += 1
        assert taken == legal
        self.provisional = tokens[:taken]

    @precondition(lambda self: self.provisional is None)
    @rule(text=st.sampled_from([b"", b"a", b"[1,", b'"\xc3', b"abq", b"true", b"\x00"]))
    def feed(self, text):
        expected = self.replay()
        taken = self.at.feed(text)
        legal = 0
        while legal < len(text) and expected.preview(text[legal : legal + 1]) == 1:
            expected.commit()
            legal += 1
        assert taken == legal
        self.committed += text[:taken]

    @rule()
    def commit(self):
        self.at.commit()
        self.committed += self.provisional or []
        self.provisional = None

    @rule()
    def discard(self):
        self.at.discard()
        self.provisional = None

    @precondition(lambda self: self.provisional is not None)
    @rule()
    def start_too_early(self):
        with pytest.raises(PendingPreview):
            self.at.lookahead([], mask_buffer(1, self.at.mask_words))
        with pytest.raises(PendingPreview):
            self.at.preview([])

    @precondition(lambda self: self.provisional is None)
    @rule(data=st.data())
    def fail(self, data):
        drafts = self.path(data, 2)
        with pytest.raises(InvalidMask):
            self.at.lookahead(drafts, mask_buffer(len(drafts) + 1, self.at.mask_words + 1))
        with pytest.raises(TypeError):
            self.at.lookahead([*drafts, "x"], mask_buffer(9, self.at.mask_words))
        with pytest.raises(TypeError):
            self.at.preview([*drafts, None])

    @invariant()
    def is_where_the_replay_is(self):
        expected = self.replay(*(self.provisional or []))
        assert (self.at.terminated, self.at.can_end) == (expected.terminated, expected.can_end)
        if self.provisional is None:
            assert allowed_tokens(self.at) == allowed_tokens(expected)


TestMatcherAgainstReplay = MatcherAgainstReplay.TestCase
TestMatcherAgainstReplay.settings = settings(stateful_step_count=30)


@pytest.mark.parametrize("undone", range(12))
def test_refusals_and_rollbacks_leave_the_remaining_prefix(undone):
    text = b"[1,[ab,1],[[1]],ab]"
    kept = len(text) - undone
    at = matcher("nested")
    for byte in text[:kept]:
        assert at.preview([ord("x"), byte]) == 0
        at.discard()
        advance(at, [byte])
    tail = [*text[kept:], VOCABULARY.eos_ids[0]]
    assert at.preview(tail) == len(tail)
    assert at.terminated
    at.discard()
    fresh = matcher("nested")
    advance(fresh, text[:kept])
    assert allowed_tokens(at) == allowed_tokens(fresh)
