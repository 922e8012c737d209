"""Content with calls in it: text before the first call is published, calls are read at the end.

Sees committed text only. The marker is looked for as text, so it does not matter which tokens or
rounds it came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ninfer.contract import (
    ConstraintBranch,
    FinishReason,
    IntegrityError,
    ToolCall,
    ToolCallParse,
    ToolFallback,
)
from ninfer.qwen_frontend.overlap import overlap
from ninfer.qwen_frontend.publication import ContentEnding
from ninfer.qwen_frontend.tool_arguments import decode_call
from ninfer.qwen_frontend.tool_call_parser import Ending, ParsedCalls, RawCall, parse_calls
from ninfer.qwen_frontend.tool_contract import ToolContract, is_tool_name
from ninfer.qwen_frontend.tool_framing import CALL_OPENING


class ToolContent:
    """Publishes text up to the call marker and collects the rest.

    ``decides_once`` is the rule of a JSON answer beside tools: the first character decides, and
    content is never searched. The first ``prefix`` characters belong to the prompt and are not
    published again.
    """

    __slots__ = (
        "_contract",
        "_decides_once",
        "_held",
        "_is_content",
        "_is_tools",
        "_name_limit",
        "_prompt_characters",
    )

    def __init__(
        self, contract: ToolContract, *, decides_once: bool, name_limit: int, prefix: str = ""
    ) -> None:
        self._contract = contract
        self._decides_once = decides_once
        self._name_limit = name_limit
        self._held = ""
        self._is_tools = False
        self._is_content = False
        self._prompt_characters = len(prefix)
        self.feed(prefix)

    @property
    def branch(self) -> ConstraintBranch:
        """Return TOOLS once the marker was seen, CONTENT once there is text."""
        if self._is_tools:
            return ConstraintBranch.TOOLS
        return ConstraintBranch.CONTENT if self._is_content else ConstraintBranch.UNDECIDED

    @property
    def holds_call(self) -> bool:
        """Return whether a complete call was seen."""
        return self._is_tools and bool(self._parse().calls)

    def feed(self, text: str) -> str:
        """Return the text that is content for certain."""
        if not text:
            return ""
        if self._decides_once and not (self._is_content or self._is_tools):
            self._is_tools = text.startswith(CALL_OPENING[0])
            self._is_content = not self._is_tools
        if self._is_tools:
            self._held += text
            return ""
        if self._decides_once:
            return self._publish(text)
        return self._search(self._held + text)

    def finish(self, reason: FinishReason) -> ContentEnding:
        """Read the calls.

        Raises: IntegrityError — a bound answer ended by itself, but its calls cannot be read.
        """
        held = self._held
        if not self._is_tools:
            return ContentEnding(self._publish(held))
        parsed = self._parse()
        seen = ToolCallParse(marker_seen=True)
        is_cut = reason is not FinishReason.STOP_TOKEN
        fallback = self._fallback(parsed.ending, parsed.calls, is_cut=is_cut)
        if fallback is ToolFallback.NONE:
            return self._calls(parsed.calls, seen)
        if self._contract.is_bound:
            raise IntegrityError(f"the calls of a bound answer cannot be read: {fallback.value}")
        return ContentEnding(self._publish(held), (), replace(seen, fallback_reason=fallback))

    def _search(self, text: str) -> str:
        at = text.find(CALL_OPENING)
        self._is_tools = at >= 0
        if at < 0:
            at = len(text) - overlap(text, CALL_OPENING)
        self._held = text[at:]
        return self._publish(text[:at])

    def _publish(self, text: str) -> str:
        self._is_content = self._is_content or bool(text)
        known = min(len(text), self._prompt_characters)
        self._prompt_characters -= known
        return text[known:]

    def _parse(self) -> ParsedCalls:
        return parse_calls(self._held, is_exact=self._contract.is_bound)

    def _fallback(self, ending: Ending, calls: Sequence[RawCall], *, is_cut: bool) -> ToolFallback:
        if ending is Ending.MALFORMED or (ending is Ending.UNFINISHED and not is_cut):
            return ToolFallback.MALFORMED_STRUCTURE
        if ending is Ending.TRAILING:
            return ToolFallback.TRAILING_CONTENT
        for call in calls:
            if not is_tool_name(call.name, self._name_limit):
                return ToolFallback.INVALID_TOOL_NAME
            if call.name not in {tool.name for tool in self._contract.tools}:
                return ToolFallback.UNDECLARED_TOOL
        return ToolFallback.NONE

    def _calls(self, raw_calls: Sequence[RawCall], parse: ToolCallParse) -> ContentEnding:
        tools = {tool.name: tool for tool in self._contract.tools}
        calls: list[ToolCall] = []
        for raw in raw_calls:
            decoded = decode_call(raw, tools[raw.name], parse)
            calls.append(decoded.call)
            parse = decoded.parse
        return ContentEnding("", tuple(calls), parse)
