"""Fakes and judges shared by the tests."""
