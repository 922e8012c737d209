"""Handles of the grammar core: what is shared, immutable and owned by reference.

Knows nothing of constraint kinds or text sources. The core is reached through tvm-ffi's C ABI;
neither its Python package nor tvm-ffi's is imported.
"""

from typing import final

from ninfer.contract.vocabulary import TokenVocabulary

__pyx_capi__: dict[str, object]
"""The C functions that the matcher calls."""

def load(ffi_library: str, core_library: str) -> None:
    """Open both shared objects and check every method that will be called; later calls do nothing.

    Raises: ImportError — a file cannot be opened, or a type, method or signature is not the pinned
            one.
    """

@final
class TokenIndex:
    """A vocabulary as the core sees it: bytes by identity, ends, and what is never possible.

    Math:    CONTROL and UNUSED ids are in no mask; every EOS id is in a mask exactly where the
             language may end; bits at and above V are zero.
    Effects: takes about 0.5 µs a token once; immutable afterwards.
    Raises:  IntegrityError — ``load`` was not called, or the core refuses the vocabulary.
    Source:  specification 3.3.
    """

    def __init__(self, vocabulary: TokenVocabulary) -> None: ...
    @property
    def token_domain(self) -> int:
        """Return V."""

    @property
    def mask_words(self) -> int:
        """Return W, the int32 words of one position."""

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Return the ids that end an answer."""

@final
class Compiler:
    """Turns emitted EBNF into compiled grammars; its rules are cached across grammars.

    Units:   ``cache_bytes`` bounds the rule cache.
    Effects: may be used by several threads at once; compiling holds no lock of Python's.
    """

    def __init__(self, index: TokenIndex, cache_bytes: int) -> None: ...
    @property
    def index(self) -> TokenIndex:
        """Return the vocabulary it compiles for."""

    @property
    def cache_bytes(self) -> int:
        """Return what the rule cache holds now."""

    def compile(self, ebnf: str) -> CompiledGrammar:
        """Return the grammar of a text whose entry rule ``root`` is not recursive.

        Raises: IntegrityError — the core refuses the text; what users wrote was checked before.
        """

@final
class CompiledGrammar:
    """An immutable grammar, shared by any number of matchers; it comes from ``Compiler.compile``.

    Effects: masks are built at the first visit of a state and kept, so it grows a little in use.
    """

    @property
    def index(self) -> TokenIndex:
        """Return the vocabulary it was compiled for."""

    @property
    def memory_bytes(self) -> int:
        """Return roughly what the grammar holds now."""
