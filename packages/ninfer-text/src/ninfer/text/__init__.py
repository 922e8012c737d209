"""Constraint sources to masks."""
