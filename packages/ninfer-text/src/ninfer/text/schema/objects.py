"""The text of a whole object, by counting its members only where something is counted."""

from __future__ import annotations

from ninfer.text.grammar import Literal, Node, concatenation
from ninfer.text.schema.counted_members import CountedMembers
from ninfer.text.schema.members import Members


def object_node(members: Members) -> Node:
    """Return the text of a whole object."""
    shape = members.shape
    if shape.least or shape.most is not None or members.floating or members.last:
        return concatenation(Literal("{"), CountedMembers(members).node(), members.closing)
    return concatenation(Literal("{"), members.plain())
