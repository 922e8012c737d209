"""Random schemas of the supported subset, as hypothesis strategies that shrink."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "ab", "k1", "é", 'q"')
PATTERNS = ("^a", "b$", "^[ab]{1,3}$", "[0-9]", "^k", "a.b", "^(x|yz)*$", '"', "^.{2,5}$")
TEXTS = ("", "a", "ab", "b", "no", "\n", 'q"\\', "é😀", "k1")

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-20, 20),
    st.sampled_from((0.5, -2.25, 1e-7, 1e20, 0.1)),
    st.sampled_from(TEXTS),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(NAMES), inner, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def _numbers(draw: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": draw(st.sampled_from(("integer", "number")))}
    bounds = st.one_of(st.integers(-30, 30), st.sampled_from((0.5, -1.5, 2.25, 1e-3, 1e6)))
    for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if draw(st.integers(0, 3)) == 0:
            schema[word] = draw(bounds)
    if schema["type"] == "integer" and draw(st.integers(0, 4)) == 0:
        schema["multipleOf"] = draw(st.sampled_from((2, 3, 7, 0.5)))
    return schema


@st.composite
def _strings(draw: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if draw(st.booleans()):
        schema["pattern"] = draw(st.sampled_from(PATTERNS))
    if draw(st.booleans()):
        schema["minLength"] = draw(st.integers(0, 4))
    if draw(st.booleans()):
        schema["maxLength"] = draw(st.integers(0, 20))
    return schema


@st.composite
def _objects(draw: Any, inner: Any) -> dict[str, Any]:
    properties = draw(st.dictionaries(st.sampled_from(NAMES), inner, max_size=4))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if draw(st.booleans()):
        schema["required"] = sorted(draw(st.sets(st.sampled_from(NAMES), max_size=2)))
    match draw(st.integers(0, 3)):
        case 0:
            schema["additionalProperties"] = False
        case 1:
            schema["additionalProperties"] = draw(inner)
    match draw(st.integers(0, 11)):
        case 0:
            schema["patternProperties"] = {draw(st.sampled_from(PATTERNS)): draw(inner)}
        case 1:
            schema["minProperties"] = draw(st.integers(0, 3))
        case 2:
            schema["maxProperties"] = draw(st.integers(0, 3))
        case 3:
            schema["propertyNames"] = {"pattern": draw(st.sampled_from(PATTERNS))}
        case 4:
            first, second = draw(st.permutations(NAMES))[:2]
            schema["dependentRequired"] = {first: [second]}
        case 5:
            schema["dependentSchemas"] = {draw(st.sampled_from(NAMES)): draw(inner)}
    return schema


@st.composite
def _arrays(draw: Any, inner: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array"}
    if draw(st.booleans()):
        schema["items"] = draw(inner)
    if draw(st.booleans()):
        schema["prefixItems"] = draw(st.lists(inner, min_size=1, max_size=3))
    if draw(st.booleans()):
        schema["minItems"] = draw(st.integers(0, 3))
    if draw(st.booleans()):
        schema["maxItems"] = draw(st.integers(0, 4))
    match draw(st.integers(0, 9)):
        case 0:
            schema["uniqueItems"] = True
        case 1:
            schema["contains"] = draw(inner)
        case 2:
            schema.update(contains=draw(inner), minContains=draw(st.integers(0, 2)))
            schema["maxContains"] = draw(st.integers(0, 3))
    return schema


@st.composite
def _combined(draw: Any, inner: Any) -> dict[str, Any]:
    schema = dict(draw(inner)) if draw(st.booleans()) else {}
    branches = st.lists(inner, min_size=1, max_size=3)
    match draw(st.integers(0, 6)):
        case 0:
            schema["anyOf"] = draw(branches)
        case 1:
            schema["allOf"] = draw(branches)
        case 2 | 3:
            schema["oneOf"] = draw(branches)
        case 4:
            schema["not"] = draw(inner)
        case 5:
            schema.update({"if": draw(inner), "then": draw(inner), "else": draw(inner)})
        case 6:
            schema["$ref"] = "#/$defs/r"
    return schema


_leaves = st.one_of(
    st.builds(dict),
    st.builds(lambda names: {"type": names}, st.sampled_from(("null", "boolean", "string"))),
    st.builds(lambda v: {"const": v}, values),
    st.builds(lambda v: {"enum": v}, st.lists(values, min_size=1, max_size=4)),
    _numbers(),
    _strings(),
)
_inner = st.recursive(
    _leaves, lambda s: st.one_of(_objects(s), _arrays(s), _combined(s)), max_leaves=6
)


@st.composite
def schemas(draw: Any) -> dict[str, Any]:
    """Draw a schema; ``#/$defs/r`` is always there to be referred to, and may be recursive."""
    return {**draw(_inner), "$defs": {"r": draw(_inner)}}
