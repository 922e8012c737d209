"""String automata over Unicode characters: sets, machines and the operations between them.

Owns regular languages of decoded characters. Does not know regex syntax, JSON escaping of text, or
the grammar core.
"""
