"""Compile the grammar core's two Cython modules; everything else stands in pyproject.toml.

Only headers of tvm-ffi are needed: its functions are looked up at run time, so nothing is linked
and no path of the (temporary) build environment ends up in the result.
"""

from importlib.util import find_spec
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup


def include_folder() -> str:
    """Return the header folder of the build environment's apache-tvm-ffi, without importing it."""
    spec = find_spec("tvm_ffi")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("ninfer-text: apache-tvm-ffi is missing from the build environment")
    return str(Path(spec.submodule_search_locations[0]) / "include")


def extension(stem: str) -> Extension:
    """Return the extension module ``ninfer.text.<stem>``."""
    return Extension(
        f"ninfer.text.{stem}",
        sources=[f"src/ninfer/text/{stem}.pyx"],
        include_dirs=[include_folder(), "src/ninfer/text"],
        depends=["src/ninfer/text/_rows.h"],
        extra_compile_args=["-O3", "-std=c++17"],
        language="c++",
    )


setup(
    ext_modules=cythonize(
        [extension("_core"), extension("_matcher")],
        include_path=["src"],
        build_dir="build/cython",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "auto_pickle": False,
            "autotestdict": False,
        },
    )
)
