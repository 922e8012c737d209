"""The fixed texts of a call, as the model's template writes them.

A call: ``<tool_call>``, line break, ``<function=NAME>``, line break, its parameters, then
``</function>``, line break, ``</tool_call>``. A parameter: ``<parameter=NAME>``, line break, value,
line break, ``</parameter>``, line break. Between calls one line break.
"""

from __future__ import annotations

from ninfer.qwen_frontend.tool_values import VALUE_CLOSING

CALL_OPENING = "<tool_call>"
FUNCTION_OPENING = "\n<function="
TAG_END = ">\n"
PARAMETER_OPENING = "<parameter="
PARAMETER_ENDING = "\n"
"""Follows the closing of a value."""
PARAMETER_CLOSING = VALUE_CLOSING + PARAMETER_ENDING
CALL_CLOSING = "</function>\n</tool_call>"
CALL_SEPARATOR = "\n"
