"""Decoder models as plain tensor code: shapes, weights, attention over paged keys and values.

Owns what a model computes. Does not read files, own sequences, sample, or know languages.
"""
