"""Anthropic Messages: routes, wire records, translation."""
