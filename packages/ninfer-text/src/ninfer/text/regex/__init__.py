"""Regular expressions of the ECMAScript subset: one parser for whole matches and for searches.

Owns the syntax and what it means as a language. Does not know JSON text or the grammar core.
"""
