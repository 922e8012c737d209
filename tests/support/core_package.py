"""The grammar core through its own Python package, for comparison only; slow to import."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from ninfer.contract import TokenClass, TokenVocabulary


def core_package() -> Any:
    """Return the package, or skip the test without it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("xgrammar")


def package_compiler(vocabulary: TokenVocabulary, *, dynamic: bool = True) -> Any:
    """Return the package's compiler for a vocabulary, with the facts that we give it ourselves."""
    package = core_package()
    spelled = zip(vocabulary.pieces, vocabulary.classes, strict=True)
    tokens = package.TokenizerInfo(
        [piece if kind == TokenClass.TEXT else b"" for piece, kind in spelled],
        package.VocabType.RAW,
        vocab_size=vocabulary.token_domain,
        stop_token_ids=list(vocabulary.eos_ids),
    )
    return package.GrammarCompiler(
        tokens, max_threads=1, cache_limit_bytes=64 << 20, enable_dynamic_compilation=dynamic
    )
