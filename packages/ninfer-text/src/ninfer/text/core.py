"""The seam to the grammar core: the only module that finds it, loads it and hands it text.

Does not know constraint kinds; it sees EBNF that the emitter wrote.
"""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from ninfer.contract import TokenVocabulary
from ninfer.text._core import CompiledGrammar, Compiler, TokenIndex, load

# Kept in step with pyproject.toml: other versions may mean other languages under the same text.
CORE_VERSION = "0.2.9"

RULE_CACHE_BYTES = 64 << 20


class GrammarCore:
    """Compiles emitted EBNF for one vocabulary, lazily and one thread a grammar.

    Units:   ``rule_cache_bytes`` bounds the masks that are shared between grammars with equal
             rules.
    Effects: building it indexes the vocabulary (about 0.15 s for 248,000 tokens). Any number of
             threads may compile at once.
    Raises:  ImportError — the grammar core is absent or not the pinned one.
    """

    def __init__(
        self, vocabulary: TokenVocabulary, *, rule_cache_bytes: int = RULE_CACHE_BYTES
    ) -> None:
        load_core()
        self.vocabulary = vocabulary
        self._compiler = Compiler(TokenIndex(vocabulary), rule_cache_bytes)

    @property
    def rule_cache_bytes(self) -> int:
        """Return what the shared rules hold now."""
        return self._compiler.cache_bytes

    def compile(self, ebnf: str) -> CompiledGrammar:
        """Return the compiled grammar of an EBNF text with a non-recursive ``root``.

        Raises: IntegrityError — the core refuses what the emitter wrote.
        """
        return self._compiler.compile(ebnf)


def load_core() -> None:
    """Load the pinned grammar core without importing its Python package.

    Raises: ImportError — a package is missing, or its version or method table is another one.
    """
    ffi_folder = _package_folder("tvm_ffi", "apache-tvm-ffi")
    core_folder = _package_folder("xgrammar", "xgrammar")
    found = version("xgrammar")
    if found != CORE_VERSION:
        raise ImportError(f"xgrammar {found} is installed, {CORE_VERSION} is needed")
    load(
        str(ffi_folder / "lib" / "libtvm_ffi.so"),
        str(core_folder / "libxgrammar_bindings.so"),
    )


def _package_folder(package: str, distribution: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{distribution} is not installed")
    return Path(spec.submodule_search_locations[0])
