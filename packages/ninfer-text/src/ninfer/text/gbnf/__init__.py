"""GBNF texts: the grammar that a caller writes by hand.

Owns the syntax, its limits, and the check of token references. Does not know the core's dialect.
"""

from ninfer.text.gbnf.language import gbnf_grammar, gbnf_language

__all__ = ["gbnf_grammar", "gbnf_language"]
