"""The states that thinking and calls share, so that no request pays for their first masks."""

from __future__ import annotations

from ninfer.contract import ToolChoice, ToolDeclaration
from ninfer.qwen_frontend.facts import ReasoningMarkers
from ninfer.qwen_frontend.stage_grammar import with_reasoning
from ninfer.qwen_frontend.tool_contract import ToolContract, select_tools
from ninfer.qwen_frontend.tool_framing import (
    CALL_CLOSING,
    CALL_OPENING,
    FUNCTION_OPENING,
    PARAMETER_CLOSING,
    PARAMETER_OPENING,
    TAG_END,
)
from ninfer.qwen_frontend.tool_grammar import tool_grammar
from ninfer.text import CompiledGrammar, ConstraintCompiler
from ninfer.text.grammar import Grammar
from ninfer.text.warm_up import WarmLanguage

_NAME = "name"


def stage_language(compiler: ConstraintCompiler, markers: ReasoningMarkers | None) -> WarmLanguage:
    """Return one answer that thinks, writes text and calls a plain tool."""
    contract = select_tools((ToolDeclaration(_NAME, "{}"),), ToolChoice(), name_limit=len(_NAME))
    assert contract is not None

    def compiled() -> CompiledGrammar:
        return compiler.compile_language("warm up", lambda: _language(contract, markers)).grammar

    return WarmLanguage("thinking, text and a call", compiled, _walk(markers))


def _language(contract: ToolContract, markers: ReasoningMarkers | None) -> Grammar:
    grammar = tool_grammar(contract)
    return grammar if markers is None else with_reasoning(grammar, markers)


def _walk(markers: ReasoningMarkers | None) -> str:
    thinking = "" if markers is None else f"a{markers.canonical_close}"
    parameter = f"{PARAMETER_OPENING}{_NAME}{TAG_END}a{PARAMETER_CLOSING}"
    call = f"{CALL_OPENING}{FUNCTION_OPENING}{_NAME}{TAG_END}{parameter}{CALL_CLOSING}"
    return f"{thinking}a{call}"
