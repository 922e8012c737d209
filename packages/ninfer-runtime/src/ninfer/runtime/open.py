"""From a model's path to an engine that answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ninfer.contract import EngineOptions
from ninfer.runtime.engine import Engine
from ninfer.runtime.masks import lookahead_native
from ninfer.runtime.request_log import RequestLog

if TYPE_CHECKING:
    from ninfer.runtime.loading import Progress


def open_engine(
    model_path: str | Path | None = None,
    options: EngineOptions | None = None,
    *,
    device: str | None = None,
    chat_template: str | None = None,
    warm_up: bool = True,
    progress: Progress | None = None,
    log: RequestLog | None = None,
) -> Engine:
    """Load a model and start an engine over it; without a path the embedded model.

    ``device`` None takes CUDA where there is one. ``chat_template`` replaces the checkpoint's.
    Raises: ModelError — the files cannot be found, read or served; ValueError — an option is out
            of its range or the capacities do not fit each other.
    """
    # Imported here: torch takes seconds, and a caller that only reads types must not pay.
    import torch

    from ninfer.qwen_frontend.frontend import Frontend
    from ninfer.runtime.loading import load_model
    from ninfer.runtime.program import TorchProgram

    chosen = options or EngineOptions()
    target = device or ("cuda" if torch.cuda.is_available() else "cpu")
    path = None if model_path is None else Path(model_path)
    model = load_model(path, device=target, progress=progress)
    facts = model.facts
    if chat_template is not None:
        facts = replace(facts, chat_template=chat_template)
    frontend = Frontend(facts, cache_bytes=chosen.grammar_cache_bytes)
    if warm_up:
        frontend.warm_up()
    program = TorchProgram(model, chosen)
    return Engine(program, frontend, chosen, lookahead=lookahead_native, log=log)
