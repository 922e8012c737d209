"""Engine, scheduler, program and models.

Owns request lifecycles, rounds, device memory and weights. Does not know output formats (the
frontend does) or wire formats (the apps do). Importing it does not import torch.
"""

from ninfer.runtime.counters import EngineStats, Histogram
from ninfer.runtime.engine import Engine
from ninfer.runtime.events import (
    GenerationEnd,
    GenerationStart,
    PromptProgress,
    StreamEvent,
    TimingSnapshot,
)
from ninfer.runtime.frontend import Frontend
from ninfer.runtime.handle import GenerationHandle
from ninfer.runtime.inbox import EngineState
from ninfer.runtime.log_writer import JsonLinesLog
from ninfer.runtime.metrics import HistogramValue, Metric, MetricKind
from ninfer.runtime.open import open_engine
from ninfer.runtime.prepared import Cancellation, Prepared
from ninfer.runtime.request_log import RequestLog, SilentLog

__all__ = [
    # engine
    "Engine",
    "EngineState",
    "Frontend",
    "open_engine",
    # requests
    "Cancellation",
    "GenerationHandle",
    "Prepared",
    # events
    "GenerationEnd",
    "GenerationStart",
    "PromptProgress",
    "TimingSnapshot",
    "StreamEvent",
    # observation
    "EngineStats",
    "Histogram",
    "HistogramValue",
    "JsonLinesLog",
    "Metric",
    "MetricKind",
    "RequestLog",
    "SilentLog",
]
