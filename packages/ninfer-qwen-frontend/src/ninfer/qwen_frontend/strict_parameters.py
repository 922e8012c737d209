"""Strict parameters: a tool's schema as a fixed list of named values."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.contract import OptionPath, ToolDeclaration, UnsupportedOption
from ninfer.qwen_frontend.tool_values import Encoding
from ninfer.text.grammar import Grammar


@dataclass(frozen=True, slots=True)
class StrictParameter:
    """One parameter: how it is written and which texts it may have."""

    name: str
    is_required: bool
    encoding: Encoding
    language: Grammar


@dataclass(frozen=True, slots=True)
class StrictParameters:
    """The parameters of one strict tool, in declared order.

    ``identity`` is the schema's text with its place among the declarations, because refusals are
    remembered with their place.
    """

    parameters: tuple[StrictParameter, ...]
    identity: str

    def encoding_of(self, name: str) -> Encoding | None:
        """Return how a parameter is written, or None where it is not declared."""
        return next((p.encoding for p in self.parameters if p.name == name), None)


def strict_parameters(index: int, declaration: ToolDeclaration) -> StrictParameters:
    """Return the strict parameters of a declaration.

    Raises: UnsupportedOption — always, until schemas can be reduced.
    """
    raise UnsupportedOption(
        "strict parameters are not served yet", location=OptionPath("tools", index)
    )
