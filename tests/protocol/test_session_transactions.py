"""A session against its replay: what was looked at, previewed or dropped leaves no trace."""

import os
from dataclasses import dataclass
from functools import cache

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ninfer.contract import (
    Channel,
    ExecutionOptions,
    FinishReason,
    IntegrityError,
    NextAction,
    OutputConstraint,
    PendingPreview,
    RequestOptions,
    StopPolicy,
    StopString,
    TextPrompt,
    ThinkingOptions,
    ToolDeclaration,
)
from support.masks import masks_along
from support.sessions import drive
from support.templates import chat, small_frontend

FRONTEND = small_frontend()
VOCABULARY = FRONTEND.vocabulary
EOS = VOCABULARY.eos_ids[0]
CONTROL_TOKENS = 160
PING = ToolDeclaration("ping", '{"type": "function", "function": {"name": "ping"}}')


def encode(text: str) -> list[int]:
    return list(FRONTEND.prepare(TextPrompt(text)).token_ids)


INTERESTING = sorted({EOS, *encode("\n\n</think>\n\nyes no</tool_call><tool_call>stop>上=")})


@cache
def prepared_prompt(tools: tuple[ToolDeclaration, ...]):
    return FRONTEND.prepare(chat("hi", tools=tools))


@dataclass(frozen=True)
class Setting:
    """One kind of request the machine plays."""

    options: RequestOptions
    tools: tuple[ToolDeclaration, ...] = ()
    limit: int = 400

    def open(self):
        prepared = prepared_prompt(self.tools)
        return FRONTEND.open_session(prepared, self.options, output_limit=self.limit)


def budget(tokens: int) -> ExecutionOptions:
    return ExecutionOptions(thinking=ThinkingOptions(tokens))


SETTINGS = [
    Setting(RequestOptions(OutputConstraint.choice(["yes", "no", " yes no"]), execution=budget(5))),
    Setting(RequestOptions(OutputConstraint.choice(["上上", "", "yes"]))),
    Setting(RequestOptions(execution=budget(4)), (PING,)),
    Setting(
        RequestOptions(
            execution=budget(6),
            stop=StopPolicy(strings=(StopString("yes"), StopString("st", Channel.REASONING))),
        )
    ),
    Setting(RequestOptions(), limit=9),
]


def masks_of(session, drafts=()):
    return masks_along(session.matcher, drafts)


def allowed_by(session, drafts=()) -> list[int]:
    """Return the tokens of the last position along legal drafts; every id for a free session."""
    if session.matcher is None:
        return list(range(VOCABULARY.token_domain))
    report, masks = masks_of(session, drafts)
    assert report.reachable == len(drafts) + 1
    return [] if report.dead_ends else sorted(masks[-1])


def replay(setting: Setting, tokens: list[int], injected: int):
    """Return a fresh session that took the same model tokens, one by one."""
    session = setting.open()
    seen = 0
    for token in tokens:
        preview = session.preview([token])
        session.commit()
        if preview.action is NextAction.APPLY_CONTROL and seen < injected:
            seen += 1
            session.preview_control()
            session.commit()
    return session


class SessionMachine(RuleBasedStateMachine):
    @initialize(setting=st.sampled_from(SETTINGS))
    def start(self, setting):
        self.begin(setting)

    def begin(self, setting):
        self.setting = setting
        self.session = setting.open()
        self.tokens: list[int] = []
        self.controls = 0
        self.preview = None
        self.pending: list[int] = []
        self.published = dict.fromkeys(Channel, "")
        self.finish: FinishReason | None = None
        self.needs_control = False

    def is_idle(self):
        return self.preview is None and self.finish is None

    def legal_round(self, data, most):
        drafts: list[int] = []
        for _ in range(data.draw(st.integers(1, max(1, most)))):
            allowed = allowed_by(self.session, drafts)
            if not allowed:
                break
            liked = [t for t in INTERESTING if t in set(allowed)]
            pool = liked if liked and data.draw(st.booleans()) else allowed
            drafts.append(data.draw(st.sampled_from(pool)))
            if drafts[-1] in VOCABULARY.eos_ids:
                break
        assume(drafts)
        return drafts

    @precondition(lambda self: self.is_idle() and not self.needs_control)
    @rule(data=st.data())
    def preview_a_round(self, data):
        room = self.session.remaining_model_tokens
        assert room >= 1
        self.pending = self.legal_round(data, min(room, 4))
        self.preview = self.session.preview(self.pending)
        assert 1 <= self.preview.accepted_tokens <= len(self.pending)
        if self.preview.finish is None:
            assert self.preview.accepted_tokens == len(self.pending)

    @precondition(lambda self: self.is_idle() and self.needs_control)
    @rule()
    def preview_the_control(self):
        assert self.session.remaining_model_tokens == 0
        with pytest.raises(IntegrityError):
            self.session.preview([EOS])
        self.pending = list(self.session.control_tokens)
        self.preview = self.session.preview_control()

    @precondition(lambda self: self.preview is not None)
    @rule()
    def discard(self):
        self.session.discard()
        self.preview = None

    @precondition(lambda self: self.preview is not None)
    @rule()
    def commit(self):
        deltas = self.session.commit()
        assert len({delta.channel for delta in deltas}) == len(deltas)
        for delta in deltas:
            assert delta.text
            self.published[delta.channel] += delta.text
        if self.needs_control:
            self.controls += 1
        else:
            self.tokens += self.pending[: self.preview.accepted_tokens]
        self.needs_control = self.preview.action is NextAction.APPLY_CONTROL
        self.finish = self.preview.finish
        self.preview = None

    @precondition(lambda self: self.preview is not None)
    @rule()
    def a_second_preview_or_a_lookahead_is_refused(self):
        with pytest.raises(PendingPreview):
            self.session.preview([EOS])
        with pytest.raises(PendingPreview):
            self.session.preview_control()
        with pytest.raises(PendingPreview):
            self.session.finish(FinishReason.CANCELLED)
        if self.session.matcher is not None:
            with pytest.raises(PendingPreview):
                masks_of(self.session)

    @precondition(lambda self: self.is_idle() and self.session.matcher is not None)
    @rule(drafts=st.lists(st.sampled_from(INTERESTING) | st.integers(0, 300), max_size=5))
    def look_ahead(self, drafts):
        other = replay(self.setting, self.tokens, self.controls)
        assert masks_of(self.session, drafts) == masks_of(other, drafts)

    @precondition(lambda self: self.is_idle())
    @rule()
    def matches_its_replay(self):
        other = replay(self.setting, self.tokens, self.controls)
        assert self.session.remaining_model_tokens == other.remaining_model_tokens
        assert tuple(self.session.control_tokens) == tuple(other.control_tokens)
        assert self.session.constraint_report() == other.constraint_report() or (
            self.session.constraint_report().cache != other.constraint_report().cache
        )
        assert self.session.thinking_report() == other.thinking_report()

    @precondition(lambda self: self.finish is not None)
    @rule(setting=st.sampled_from(SETTINGS))
    def settle_and_begin_again(self, setting):
        self.settle()
        self.begin(setting)

    @invariant()
    def counts_agree(self):
        if hasattr(self, "session"):
            report = self.session.thinking_report()
            assert report.applied == (self.controls > 0)

    def teardown(self):
        if hasattr(self, "session"):
            self.settle()

    def settle(self):
        self.session.discard()
        reason = self.finish or FinishReason.CANCELLED
        deltas, output = self.session.finish(reason)
        for delta in deltas:
            self.published[delta.channel] += delta.text
        _, expected = replay(self.setting, self.tokens, self.controls).finish(reason)
        assert output == expected
        assert self.published[Channel.CONTENT] == output.content
        assert self.published[Channel.REASONING] == output.reasoning


TestSession = SessionMachine.TestCase
TestSession.settings = settings(
    max_examples=1000 if os.environ.get("NINFER_SLOW") else 50,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def test_a_token_the_matcher_refuses_is_our_own_fault_and_leaves_no_trace():
    session = SETTINGS[0].open()
    session.preview(encode("\n</think>\n\n"))
    session.commit()
    before = masks_of(session)
    with pytest.raises(IntegrityError, match="refuses token"):
        session.preview(encode("yex"))
    assert masks_of(session) == before
    assert session.preview(encode("yes")).finish is None


def test_every_end_mark_is_masked_until_the_answer_is_whole_and_open_then():
    session = SETTINGS[0].open()
    steps = []
    for token in [*encode("hm\n</think>\n\n"), *encode("no")]:
        allowed = set(allowed_by(session))
        steps.append([eos in allowed for eos in VOCABULARY.eos_ids])
        session.preview([token])
        session.commit()
    assert not any(any(step) for step in steps)
    assert set(allowed_by(session)) == set(VOCABULARY.eos_ids)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_stream_published_in_one_round_or_many_is_the_same(setting):
    text = "so\n</think>\n\nyes"
    tokens = [*encode(text), EOS]
    whole = drive(setting.open(), tokens, [len(tokens)] * 9)
    assert whole == drive(setting.open(), tokens)
    assert whole == drive(setting.open(), tokens, [2, 3] * 9)
