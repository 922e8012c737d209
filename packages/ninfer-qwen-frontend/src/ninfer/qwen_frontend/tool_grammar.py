"""A tool contract as the model's own language.

Source: specification 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.qwen_frontend.raw_text import ANY_TEXT, RAW_RULES
from ninfer.qwen_frontend.stage_grammar import without
from ninfer.qwen_frontend.tool_contract import Tool, ToolContract
from ninfer.qwen_frontend.tool_framing import (
    CALL_CLOSING,
    CALL_OPENING,
    CALL_SEPARATOR,
    FUNCTION_OPENING,
    PARAMETER_ENDING,
    PARAMETER_OPENING,
    TAG_END,
)
from ninfer.text.automata.characters import CharacterSet
from ninfer.text.grammar import (
    Automaton,
    Characters,
    Grammar,
    Literal,
    Node,
    Reference,
    alternation,
    concatenation,
    join,
    optional,
    repetition,
)

_PLAIN = Reference("plain_parameters")
_NAME_CHARACTERS = ~CharacterSet.from_text("<>\r\n")


def tool_grammar(contract: ToolContract) -> Grammar:
    """Return the language of an answer under a contract, without thinking.

    Math: no tools: texts without the call marker. Required: calls. Otherwise: a text without the
          marker, then optionally calls. Calls are separated by one line break, and there is at most
          one where they are not parallel.
    """
    text = Automaton(without(CALL_OPENING))
    if contract.is_forbidding:
        return Grammar(text)
    calls = call_sequence(contract)
    if contract.is_required:
        return calls
    return join([calls], lambda entries: concatenation(text, optional(entries[0])))


def call_sequence(contract: ToolContract) -> Grammar:
    """Return the language of one or more calls."""
    grammars = [_call(tool) for tool in contract.tools]
    return join(grammars, lambda entries: _sequence(entries, contract), _plain_rules())


def tools_or(content: Grammar, contract: ToolContract) -> Grammar:
    """Return either the content's language or calls, never both in one answer."""
    calls = call_sequence(contract)
    return join([content, calls], lambda entries: alternation(*entries))


def _sequence(calls: Sequence[Node], contract: ToolContract) -> Node:
    body = alternation(*calls)
    one = concatenation(Literal(CALL_OPENING), body)
    if not contract.is_parallel:
        return one
    return concatenation(one, repetition(concatenation(Literal(CALL_SEPARATOR), one), 0, None))


def _call(tool: Tool) -> Grammar:
    opening = Literal(FUNCTION_OPENING + tool.name + TAG_END)
    if tool.strict is None:
        return Grammar(concatenation(opening, _PLAIN, Literal(CALL_CLOSING)), _plain_rules())
    return join(
        [tool.strict.arguments],
        lambda entries: concatenation(opening, entries[0], Literal(CALL_CLOSING)),
    )


def _plain_rules() -> dict[str, Node]:
    """Return the rules that every plain tool shares: any names, any texts, in any order."""
    name = repetition(Characters(_NAME_CHARACTERS), 1, None)
    parameter = concatenation(
        Literal(PARAMETER_OPENING), name, Literal(TAG_END), ANY_TEXT, Literal(PARAMETER_ENDING)
    )
    return {_PLAIN.rule: repetition(parameter, 0, None), **RAW_RULES}
