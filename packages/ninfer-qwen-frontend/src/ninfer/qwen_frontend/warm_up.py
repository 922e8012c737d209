"""Visits the states that thinking and calls share, so that no request pays for first masks."""

from __future__ import annotations

from ninfer.contract import ToolChoice, ToolDeclaration, mask_words
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
from ninfer.text.compiler import ConstraintCompiler
from ninfer.text.grammar import Grammar

_NAME = "name"


def warm_stages(compiler: ConstraintCompiler, markers: ReasoningMarkers | None) -> None:
    """Compile one answer that thinks, writes text and calls a plain tool, and fill its masks.

    Effects: the compiler keeps the masks of the rules, which equal rules of other grammars share.
    """
    contract = select_tools((ToolDeclaration(_NAME, "{}"),), ToolChoice(), name_limit=len(_NAME))
    assert contract is not None
    compiled = compiler.compile_language("warm up", lambda: _language(contract, markers))
    matcher = compiler.matcher(compiled)
    words = mask_words(compiler.vocabulary.token_domain)
    mask = memoryview(bytearray(4 * words)).cast("i", (1, words))
    for byte in _walk(markers):
        matcher.lookahead((), mask)
        matcher.feed(bytes([byte]))


def _language(contract: ToolContract, markers: ReasoningMarkers | None) -> Grammar:
    grammar = tool_grammar(contract)
    return grammar if markers is None else with_reasoning(grammar, markers)


def _walk(markers: ReasoningMarkers | None) -> bytes:
    thinking = "" if markers is None else f"a{markers.canonical_close}"
    parameter = f"{PARAMETER_OPENING}{_NAME}{TAG_END}a{PARAMETER_CLOSING}"
    call = f"{CALL_OPENING}{FUNCTION_OPENING}{_NAME}{TAG_END}{parameter}{CALL_CLOSING}"
    return f"{thinking}a{call}".encode()
