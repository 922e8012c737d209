"""Trains drafters for a dense target on text that the target writes itself.

Owns the recipe. Serving belongs to ninfer.runtime; the two meet in the drafter folder's files.
"""
