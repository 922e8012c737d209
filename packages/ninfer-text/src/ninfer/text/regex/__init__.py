"""Regular expressions of the ECMAScript subset: one parser for whole matches and for searches.

Owns the syntax and what it means as a language. Does not know JSON text or the grammar core.
"""

from ninfer.text.regex.grammar import regex_grammar
from ninfer.text.regex.language import pattern_automaton, search_expression, whole_expression

__all__ = ["pattern_automaton", "regex_grammar", "search_expression", "whole_expression"]
