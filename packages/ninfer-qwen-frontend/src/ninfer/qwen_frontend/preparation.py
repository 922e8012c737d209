"""Prompts become token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ninfer.contract import (
    ChatPrompt,
    ConflictingOptions,
    Continuation,
    InvalidContinuation,
    InvalidPrompt,
    InvalidToolConstraint,
    JsonPointer,
    Message,
    OptionPath,
    PromptInput,
    TextPrompt,
    TokenPrompt,
    TokenVocabulary,
    ToolDeclaration,
    UnsupportedOption,
)
from ninfer.qwen_frontend.continuation import Render, continued_prompt, final_text
from ninfer.qwen_frontend.facts import ModelFacts
from ninfer.qwen_frontend.messages import template_messages, template_options, template_tools
from ninfer.qwen_frontend.prepared import PreparedPrompt
from ninfer.qwen_frontend.template import ChatTemplate
from ninfer.qwen_frontend.thinking_template import ThinkingOpening, thinking_opening
from ninfer.qwen_frontend.tool_template import tool_template_source


class Encoder(Protocol):
    """Turns text into token ids; marks written in the text become their tokens."""

    def encode(self, text: str, *, whole_prompt: bool) -> tuple[int, ...]:
        """Return the ids; ``whole_prompt`` adds what the tokenizer puts around any text."""
        ...


class PromptBuilder:
    """Renders and encodes prompts of one model."""

    __slots__ = (
        "_encoder",
        "_facts",
        "_marks",
        "_opening_text",
        "_openings",
        "_template",
        "_tool_template",
        "_vocabulary",
    )

    def __init__(self, facts: ModelFacts, encoder: Encoder, vocabulary: TokenVocabulary) -> None:
        self._facts = facts
        self._encoder = encoder
        self._vocabulary = vocabulary
        self._template = self._load(facts.chat_template)
        self._tool_template = self._load(tool_template_source(facts))
        self._opening_text = "" if facts.reasoning is None else f"{facts.reasoning.open}\n"
        self._openings = {
            template.source: thinking_opening(template, facts.reasoning)
            for template in (self._template, self._tool_template)
            if template is not None
        }
        marks = (*facts.control_ids, *facts.eos_ids)
        self._marks = tuple(vocabulary.pieces[token].decode() for token in marks)

    def prepare(self, prompt: PromptInput) -> PreparedPrompt:
        """Render and encode one prompt.

        Raises: InvalidPrompt, InvalidContinuation, InvalidToolConstraint, InvalidOption,
                ConflictingOptions, UnsupportedOption.
        """
        match prompt:
            case TextPrompt(text):
                return PreparedPrompt(self._encode(text, whole_prompt=True))
            case TokenPrompt(token_ids):
                return PreparedPrompt(self._checked(token_ids))
            case ChatPrompt():
                return self._chat(prompt)

    def _chat(self, prompt: ChatPrompt) -> PreparedPrompt:
        options = prompt.options
        _require_names(options.tools)
        template = self._template_for(options.tools)
        opening = self._openings[template.source]
        can_think = opening is not ThinkingOpening.NOBODY
        variables = template_options(options, template, can_think=can_think)
        is_off = variables.get("enable_thinking") is False
        variables["tools"] = template_tools(options.tools)
        variables["thinking_markers"] = self._facts.reasoning is not None

        def render(messages: Sequence[Message], generate: bool) -> str:
            text = _render(template, messages, variables, generate)
            if generate and opening is ThinkingOpening.MODEL and not is_off:
                return text + self._opening_text
            return text

        if options.continuation is Continuation.CONTINUE_FINAL_ASSISTANT:
            return self._continue(prompt, render)
        text = render(prompt.messages, True)
        return PreparedPrompt(
            self._encode(text),
            is_chat=True,
            starts_in_reasoning=self._opens_reasoning(text),
            tools=options.tools,
        )

    def _continue(self, prompt: ChatPrompt, render: Render) -> PreparedPrompt:
        continued = final_text(prompt.messages)
        if self._opens_reasoning(render(prompt.messages[:-1], True)):
            raise ConflictingOptions(
                "prompt.continuation", "prompt.enable_thinking", "thinking must be off"
            )
        text = continued_prompt(
            prompt.messages, render, marks=self._marks, reasoning=self._facts.reasoning
        )
        token_ids = self._encode(text)
        spelled = b"".join(self._vocabulary.pieces[token] for token in token_ids)
        if not spelled.endswith(continued.encode()):
            raise InvalidContinuation(
                "the tokenizer changes the text of the final assistant message",
                location=OptionPath("prompt.continuation"),
            )
        return PreparedPrompt(
            token_ids, is_chat=True, continued_text=continued, tools=prompt.options.tools
        )

    def _template_for(self, tools: tuple[ToolDeclaration, ...]) -> ChatTemplate:
        if self._template is None:
            raise UnsupportedOption(
                "this model has no chat template", location=OptionPath("prompt.messages")
            )
        if not tools or self._template.mentions("tools"):
            return self._template
        if self._tool_template is None:
            raise UnsupportedOption(
                "this model's chat template has no tools", location=OptionPath("prompt.tools")
            )
        return self._tool_template

    def _opens_reasoning(self, text: str) -> bool:
        markers = self._facts.reasoning
        return markers is not None and text.rstrip().endswith(markers.open)

    def _encode(self, text: str, *, whole_prompt: bool = False) -> tuple[int, ...]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidPrompt(f"a lone surrogate at offset {error.start}") from error
        return self._checked(self._encoder.encode(text, whole_prompt=whole_prompt))

    def _checked(self, token_ids: Sequence[int]) -> tuple[int, ...]:
        if not token_ids:
            raise InvalidPrompt("the prompt is empty")
        domain = self._vocabulary.token_domain
        for index, token in enumerate(token_ids):
            if not 0 <= token < domain:
                raise InvalidPrompt(
                    f"token {token} is outside the domain of {domain}",
                    location=OptionPath("prompt.token_ids", index),
                )
        return tuple(token_ids)

    def _load(self, source: str | None) -> ChatTemplate | None:
        if source is None:
            return None
        facts = self._facts
        return ChatTemplate(source, bos_token=facts.bos_token, eos_token=facts.eos_token)


def _render(
    template: ChatTemplate,
    messages: Sequence[Message],
    variables: Mapping[str, Any],
    generate: bool,
) -> str:
    given = {"messages": template_messages(messages, template), "add_generation_prompt": generate}
    return template.render({**variables, **given})


def _require_names(tools: Sequence[ToolDeclaration]) -> None:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        if not tool.name:
            raise InvalidToolConstraint("a tool has no name", location=JsonPointer() / index)
        if tool.name in seen:
            raise InvalidToolConstraint(
                f"{tool.name!r} is declared twice", location=JsonPointer() / index
            )
        seen.add(tool.name)
