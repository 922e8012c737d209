"""The frontend of one model: prompts in, output sessions out."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from ninfer.contract import (
    ConflictingOptions,
    FinishReason,
    InvalidContinuation,
    ModelError,
    OptionPath,
    PromptInput,
    RequestOptions,
    TokenClass,
    TokenMatcher,
    TokenVocabulary,
    UnsupportedOption,
    WarmUpReport,
)
from ninfer.qwen_frontend.answer import Answer, plan_answer
from ninfer.qwen_frontend.budget import (
    BUDGET_OPTION,
    OutputLimit,
    ThinkingBudget,
    plan_budget,
    require_budget,
)
from ninfer.qwen_frontend.control import closing_tokens
from ninfer.qwen_frontend.decoder import PieceTable, TextDecoder
from ninfer.qwen_frontend.facts import ModelFacts
from ninfer.qwen_frontend.guarantee import Guarantee
from ninfer.qwen_frontend.position import Position, StopRules
from ninfer.qwen_frontend.preparation import PromptBuilder
from ninfer.qwen_frontend.prepared import PreparedPrompt
from ninfer.qwen_frontend.requirements import require_stop_policy
from ninfer.qwen_frontend.session import Session
from ninfer.qwen_frontend.stages import CanonicalStage, ContentStage, FreeStage, Stage
from ninfer.qwen_frontend.strict_memory import StrictMemory
from ninfer.qwen_frontend.tokenizer import TextEncoder
from ninfer.qwen_frontend.warm_up import stage_language
from ninfer.text.compiler import ConstraintCompiler
from ninfer.text.huggingface import vocabulary_from_tokenizer
from ninfer.text.warm_up import WARM_UP_BYTES, WARM_UP_SECONDS


class Frontend:
    """Owns what one model's output means.

    Effects: the grammar compiler indexes the vocabulary on first use, or in ``warm_up``; requests
             without a constraint never touch it. Every method may be called from several threads.
    Raises:  ModelError — tokenizer, template or thinking marks of the checkpoint cannot be served.
    """

    def __init__(self, facts: ModelFacts, *, cache_bytes: int = 256 << 20) -> None:
        self.facts = facts
        encoder = TextEncoder(facts.tokenizer_json)
        self.vocabulary = _vocabulary(facts, encoder)
        self.compiler = ConstraintCompiler(self.vocabulary, cache_bytes=cache_bytes)
        self._prompts = PromptBuilder(facts, encoder, self.vocabulary)
        self._strict = StrictMemory()
        self._closings: tuple[tuple[int, ...], ...] = ()
        if facts.reasoning is not None:
            self._closings = closing_tokens(facts.reasoning, encoder, self.vocabulary)

    def prepare(self, prompt: PromptInput) -> PreparedPrompt:
        """Render and encode a prompt; compiles nothing.

        Raises: InvalidPrompt, InvalidContinuation, InvalidToolConstraint, InvalidOption,
                ConflictingOptions, UnsupportedOption.
        """
        return self._prompts.prepare(prompt)

    def open_session(
        self,
        prepared: PreparedPrompt,
        options: RequestOptions,
        *,
        output_limit: int,
        limit_reason: FinishReason = FinishReason.OUTPUT_LIMIT,
    ) -> Session:
        """Compile what the request is held to and return its output session.

        Units:  ``output_limit`` counts tokens, injected control tokens included.
        Raises: RequestError — an option, a constraint or a combination is refused, or the
                continued text is not in the language.
        """
        require_stop_policy(options, self.vocabulary)
        answer = plan_answer(prepared, options, self.facts.reasoning, self._strict)
        limit = OutputLimit(output_limit, limit_reason)
        budget = self._budget(prepared, options, limit)
        guarantee = self._guarantee(prepared, answer, timings=options.phase_timings)
        stage = self._stage(prepared, options, is_constrained=guarantee is not None)
        stop = options.stop
        rules = StopRules(
            PieceTable(self.vocabulary, preserve_specials=_preserves_specials(options)),
            frozenset(stop.token_ids)
            | frozenset(self.vocabulary.eos_ids if stop.include_model_defaults else ()),
            limit_tokens=limit.tokens,
            limit_reason=limit.reason,
            publish_stop_token=stop.publish_stop_token,
        )
        position = Position(TextDecoder(stage, stop.strings))
        return Session(position, rules, answer.publisher, guarantee=guarantee, budget=budget)

    def warm_up(
        self,
        *,
        seconds: float = WARM_UP_SECONDS,
        cache_bytes: int = WARM_UP_BYTES,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> WarmUpReport:
        """Index the vocabulary and fill the masks that JSON answers, thinking and calls share.

        Units: as ``ConstraintCompiler.warm_up``; meant for a thread of its own.
        """
        return self.compiler.warm_up(
            (stage_language(self.compiler, self.facts.reasoning),),
            seconds=seconds,
            cache_bytes=cache_bytes,
            is_wanted=is_wanted,
        )

    def _budget(
        self, prepared: PreparedPrompt, options: RequestOptions, limit: OutputLimit
    ) -> ThinkingBudget | None:
        requested = options.execution.thinking.budget_tokens
        require_budget(requested)
        if requested is not None and self.facts.reasoning is None:
            place = OptionPath(BUDGET_OPTION)
            raise UnsupportedOption("the model does not think", location=place)
        if not prepared.starts_in_reasoning:
            return None
        if options.output.raw and requested is not None:
            raise ConflictingOptions("output.raw", BUDGET_OPTION, "raw text has no thinking to end")
        return plan_budget(requested, limit, self._closings)

    def _guarantee(
        self, prepared: PreparedPrompt, answer: Answer, *, timings: bool
    ) -> Guarantee | None:
        if answer.compile is None:
            return None
        started = perf_counter()
        compiled = answer.compile(self.compiler)
        matcher = self.compiler.matcher(compiled)
        _continue_from(matcher, prepared.continued_text)
        seconds = perf_counter() - started
        return Guarantee(matcher, compiled.cache, seconds, timings)

    def _stage(
        self, prepared: PreparedPrompt, options: RequestOptions, *, is_constrained: bool
    ) -> Stage:
        markers = self.facts.reasoning
        if markers is None or not prepared.starts_in_reasoning or options.output.raw:
            return ContentStage()
        return CanonicalStage(markers) if is_constrained else FreeStage(markers)


def _vocabulary(facts: ModelFacts, encoder: TextEncoder) -> TokenVocabulary:
    known = vocabulary_from_tokenizer(
        encoder.tokenizer, eos_ids=facts.eos_ids, domain=facts.token_domain
    )
    classes = bytearray(known.classes)
    for token in facts.control_ids:
        if not 0 <= token < facts.token_domain:
            raise ModelError(f"control token {token} is outside {facts.token_domain} ids")
        if classes[token] != TokenClass.EOS:
            classes[token] = TokenClass.CONTROL
    return TokenVocabulary(known.pieces, bytes(classes))


def _continue_from(matcher: TokenMatcher, text: str | None) -> None:
    if not text:
        return
    data = text.encode()
    taken = matcher.feed(data)
    if taken != len(data):
        raise InvalidContinuation(
            f"byte {taken} of the final assistant message is outside the declared language",
            location=OptionPath("prompt.continuation"),
        )


def _preserves_specials(options: RequestOptions) -> bool:
    return options.output.raw or options.output.preserve_special_tokens
