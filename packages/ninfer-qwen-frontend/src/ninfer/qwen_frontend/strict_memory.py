"""Strict parameters read before, so that a repeated tool is not reduced again."""

from __future__ import annotations

import threading
from collections import OrderedDict

from ninfer.contract import ToolDeclaration
from ninfer.qwen_frontend.strict_parameters import StrictParameters, strict_parameters


class StrictMemory:
    """The most recently used results, by schema text; refusals are not kept.

    Units:   ``schemas`` kept at most.
    Effects: thread-safe; two threads may read the same new schema at once, with equal results.
    """

    __slots__ = ("_kept", "_lock", "_schemas")

    def __init__(self, schemas: int = 64) -> None:
        self._schemas = schemas
        self._kept: OrderedDict[str | None, StrictParameters] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, declaration: ToolDeclaration) -> StrictParameters:
        """Return the strict parameters of a declaration.

        Raises: what ``strict_parameters`` raises.
        """
        key = declaration.parameters_json
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = strict_parameters(declaration)
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > self._schemas:
                self._kept.popitem(last=False)
        return found
