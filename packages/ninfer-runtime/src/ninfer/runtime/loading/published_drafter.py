"""The tensors of a published DFlash or DFlash2 folder under this project's names."""

from __future__ import annotations

import torch
from torch import Tensor

from ninfer.contract import ModelError
from ninfer.runtime.loading.checkpoint import Checkpoint

_NAMES = {
    "selector.predecessor.weight": "candidate_selector.predecessor_codebook",
    "selector.successor.weight": "candidate_selector.successor_codebook",
    "selector.hidden.weight": "candidate_selector.hidden_projection.weight",
}
_BASE = "_conv.base"
_FORMATS = (torch.float32, torch.float16, torch.bfloat16)
_TARGETS_OWN = "embed_tokens.weight"
_COMPUTED = ".inv_freq"


class PublishedTensors:
    """Implements: TensorSource; every tensor must be read, so that none is left out silently."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._read: set[str] = set()

    def has(self, name: str) -> bool:
        """Implements: TensorSource.has."""
        return self._checkpoint.has(_published(name))

    def fail(self, name: str, fact: str) -> ModelError:
        """Implements: TensorSource.fail."""
        return self._checkpoint.fail(_published(name), fact)

    def tensor(self, name: str) -> Tensor:
        """Implements: TensorSource.tensor; quantised numbers would need scales and are refused."""
        own = _published(name)
        self._read.add(own)
        stored = self._checkpoint.tensor(own)
        if stored.dtype not in _FORMATS:
            raise self._checkpoint.fail(own, f"{stored.dtype} is not served")
        return stored

    def require_all_read(self) -> None:
        """Check that a drafter took every tensor but the target's embedding.

        Raises: ModelError — a tensor is left that would have changed what is computed.
        """
        for name in sorted(self._checkpoint.names - self._read):
            if name != _TARGETS_OWN and not name.endswith(_COMPUTED):
                raise self._checkpoint.fail(name, "is not a tensor of this drafter's layers")


def _published(name: str) -> str:
    return f"{name}_kernel" if name.endswith(_BASE) else _NAMES.get(name, name)
