"""Constraint sources to masks: admission, grammars, compilation, and the matcher.

Owns what a declared language is and which tokens it allows next. Does not know prompts, stages,
tools, models or devices.
"""

from ninfer.text._core import CompiledGrammar
from ninfer.text._matcher import Matcher, lookahead_batch
from ninfer.text.compiler import Compiled, ConstraintCompiler, Envelope
from ninfer.text.core import GrammarCore
from ninfer.text.huggingface import vocabulary_from_tokenizer

__all__ = [
    # compilation
    "Compiled",
    "CompiledGrammar",
    "ConstraintCompiler",
    "Envelope",
    "GrammarCore",
    # matching
    "Matcher",
    "lookahead_batch",
    # vocabulary
    "vocabulary_from_tokenizer",
]
