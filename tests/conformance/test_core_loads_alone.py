"""The grammar core is used without its Python package, and only the pinned one is accepted."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "xgrammar", "tvm_ffi", "numpy", "tokenizers")

COMPILE_A_CHOICE = """
import sys
from ninfer.contract import OutputConstraint, TokenVocabulary
from ninfer.text import ConstraintCompiler
vocabulary = TokenVocabulary.build([bytes([b]) for b in range(256)] + [b""], eos=[256])
compiler = ConstraintCompiler(vocabulary)
matcher = compiler.matcher(compiler.compile(OutputConstraint.choice(["yes", "no"])))
assert matcher.feed(b"yes") == 3 and matcher.can_end
print(*sorted(set(sys.argv[1:]) & set(sys.modules)))
"""

LOAD = """
import sys
from ninfer.text._core import load
load(*sys.argv[1:])
"""

INDEX_WITHOUT_LOADING = """
from ninfer.contract import TokenVocabulary
from ninfer.text._core import TokenIndex
TokenIndex(TokenVocabulary.build([b"a", b""], eos=[1]))
"""


def run(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60
    )


def libraries():
    from ninfer.text.core import _package_folder

    return (
        str(_package_folder("tvm_ffi", "") / "lib" / "libtvm_ffi.so"),
        str(_package_folder("xgrammar", "") / "libxgrammar_bindings.so"),
    )


def test_compiling_a_choice_imports_nothing_heavy():
    done = run(COMPILE_A_CHOICE, *HEAVY)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (lambda ffi, core: ("/nowhere/libtvm_ffi.so", core), "cannot be loaded"),
        (lambda ffi, core: (core.replace("bindings", "other"), core), "cannot be loaded"),
        (lambda ffi, core: (ffi, ffi), "has no type xgrammar"),
        (lambda ffi, core: ("libc.so.6", core), "does not export"),
    ],
)
def test_another_library_is_an_import_error_that_says_what_is_missing(arguments, fact):
    done = run(LOAD, *arguments(*libraries()))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert fact in last


def test_an_index_needs_the_core_and_says_so():
    done = run(INDEX_WITHOUT_LOADING)
    assert (
        done.stderr.strip()
        .splitlines()[-1]
        .endswith("IntegrityError: the grammar core is not loaded")
    )


def test_loading_twice_is_one_load():
    done = run(LOAD + "load(*sys.argv[1:])\n", *libraries())
    assert (done.returncode, done.stderr) == (0, "")


def test_the_pin_is_the_same_everywhere():
    import re
    from importlib.metadata import requires, version

    from ninfer.text.core import CORE_VERSION

    pins = [re.sub(r"\s", "", r) for r in requires("ninfer-text")]
    assert f"xgrammar=={CORE_VERSION}" in pins
    assert version("xgrammar") == CORE_VERSION
