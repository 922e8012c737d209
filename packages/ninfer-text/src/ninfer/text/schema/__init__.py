"""JSON Schema to grammar: source validation, reduction to closed forms, emission.

Owns what a schema means and what is refused. Does not know tokens, the grammar core, or regex
syntax; strings are automata of ``ninfer.text.automata``.
"""

from ninfer.text.schema.compilation import schema_grammar

__all__ = ["schema_grammar"]
