"""From a model's path to an engine that answers."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ninfer.contract import EngineOptions, SpeculativeBackend
from ninfer.runtime.engine import Engine
from ninfer.runtime.masks import lookahead_native
from ninfer.runtime.request_log import RequestLog

if TYPE_CHECKING:
    from ninfer.runtime.loading import Progress

# The worker gives the interpreter lock away at every tensor operation and gets it back only after
# the switch interval while another thread compiles a grammar. At the usual 5 ms a round of the
# embedded model takes three times as long beside one busy thread as at this interval.
SWITCH_SECONDS = 0.0005


def open_engine(
    model_path: str | Path | None = None,
    options: EngineOptions | None = None,
    *,
    device: str | None = None,
    drafter_path: str | Path | None = None,
    chat_template: str | None = None,
    warm_up: bool = True,
    progress: Progress | None = None,
    log: RequestLog | None = None,
) -> Engine:
    """Load a model and start an engine over it; without a path the embedded model.

    ``device`` None takes CUDA where there is one. ``chat_template`` replaces the checkpoint's.
    A drafter is loaded when ``options.speculative`` asks for one: from ``drafter_path``, else the
    model's own or the one shipped for the embedded model. ``warm_up`` fills the masks that most
    answers share beside the first requests; ``Engine.warm_up_report`` says which.
    Effects: the interpreter's thread switch interval becomes at most SWITCH_SECONDS;
             ``options.compute_threads`` is set for the whole process.
    Raises:  ModelError — the files cannot be found, read or served, or there is no such drafter;
             UnsupportedOption — the options do not fit the model; ValueError — the key-value memory
             holds no whole context, or is more than the device has.
    """
    # Imported here: torch takes seconds, and a caller that only reads types must not pay.
    import torch

    from ninfer.qwen_frontend import find_reasoning_markers
    from ninfer.qwen_frontend.frontend import Frontend
    from ninfer.runtime.loading import load_drafter, load_model
    from ninfer.runtime.program import TorchProgram

    sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
    chosen = options or EngineOptions()
    if chosen.compute_threads is not None:
        torch.set_num_threads(chosen.compute_threads)
    target = device or ("cuda" if torch.cuda.is_available() else "cpu")
    path = None if model_path is None else Path(model_path)
    model = load_model(path, device=target, progress=progress)
    facts = model.facts
    if chat_template is not None:
        facts = replace(
            facts,
            chat_template=chat_template,
            reasoning=find_reasoning_markers(chat_template),
        )
    frontend = Frontend(facts, cache_bytes=chosen.grammar_cache_bytes)
    drafter = None
    if chosen.speculative is not SpeculativeBackend.NONE:
        folder = None if drafter_path is None else Path(drafter_path)
        drafter = load_drafter(model, chosen.speculative, folder)
    program = TorchProgram(model, chosen, drafter)
    return Engine(
        program,
        frontend,
        chosen,
        lookahead=lookahead_native,
        log=log,
        warm_up=frontend.warm_up if warm_up else None,
    )
