"""Drafters for the embedded demo model, one folder per speculative backend: data, no code.

Owns the trained files. ninfer.runtime finds and reads them; tools/train_drafters.py makes them.
"""
