"""Spells a grammar for the core: the only producer of EBNF text.

Owns the choice of form, which decides what a mask costs. Does not judge languages: what it is given
has been admitted.
"""

from ninfer.text.emitter.emit import emit

__all__ = ["emit"]
