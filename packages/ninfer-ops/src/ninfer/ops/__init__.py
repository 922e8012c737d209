"""Masked sampling under one contract."""
