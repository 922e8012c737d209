"""What Qwen-style output means: templates, stages, tools, continuation and output sessions.

Owns the way from messages to token ids and from token ids to published text. Does not know weights,
devices, scheduling or wire formats.
"""

from ninfer.qwen_frontend.facts import ModelFacts, ReasoningMarkers, find_reasoning_markers
from ninfer.qwen_frontend.frontend import Frontend
from ninfer.qwen_frontend.prepared import PreparedPrompt
from ninfer.qwen_frontend.session import Session
from ninfer.qwen_frontend.tool_template import bundled_template

__all__ = [
    # facts
    "ModelFacts",
    "ReasoningMarkers",
    "bundled_template",
    "find_reasoning_markers",
    # serving
    "Frontend",
    "PreparedPrompt",
    "Session",
]
