"""JSON Schemas made to explode: one family per known way, and mixtures of all."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

from support.heavy import regexes
from support.heavy.schema_parts import COUNTS, TYPES, any_name, measured, mixed, number, string

Family = Callable[[Random, int], Any]


def mixture(source: Random, size: int) -> Any:
    """Return random schemas with references among them."""
    definitions = {f"d{n}": mixed(source, size // 12, 1) for n in range(8)}
    root = mixed(source, size // 3, 0)
    return {"$defs": definitions, "allOf": [root]} if isinstance(root, dict) else root


def patterns_on_properties(source: Random, size: int) -> Any:
    """Return a wide object whose members are bound strings."""
    parts = measured(source, size, lambda _: string(source))
    return {"type": "object", "properties": {f"p{n}": part for n, part in enumerate(parts)}}


def one_pattern(source: Random, size: int) -> Any:
    """Return a string with one long pattern and maybe lengths."""
    family = source.choice(list(regexes.FAMILIES.values()))
    schema = {"type": "string", "pattern": family(source, size)}
    if source.random() < 0.5:
        schema |= {"minLength": source.choice(COUNTS[:6]), "maxLength": source.choice(COUNTS)}
    return schema


def many_patterns(source: Random, size: int) -> Any:
    """Return a string that many patterns must meet."""
    parts = measured(source, size, lambda _: {"pattern": regexes.mixture(source, 12)})
    return {"type": "string", source.choice(("allOf", "anyOf", "oneOf")): parts}


def pattern_properties(source: Random, size: int) -> Any:
    """Return an object of patterns that overlap with names and each other."""
    parts = measured(source, size, lambda _: {regexes.mixture(source, 10): number(source)})
    schema = {
        "type": "object",
        "patternProperties": {k: v for part in parts for k, v in part.items()},
    }
    names = {any_name(source): string(source) for _ in range(source.choice((0, 3, 40)))}
    return schema | {"properties": names, "additionalProperties": source.choice((True, False))}


def nesting(source: Random, size: int) -> Any:
    """Return schemas in schemas."""
    depth = max(1, min(size // 40, source.choice((20, 100, 126, 200, 2_000))))
    word = source.choice(("items", "object", "anyOf", "allOf", "not", "oneOf"))
    if depth > 300:
        return '{"items":' * depth + "{}" + "}" * depth
    schema: Any = {"type": "integer"}
    for level in range(depth):
        if word == "object":
            schema = {"type": "object", "properties": {"a": schema, "b": {"minLength": level}}}
        elif word in ("anyOf", "oneOf", "allOf"):
            schema = {word: [schema, {"type": "string", "maxLength": level}]}
        elif word == "not":
            schema = {"not": schema, "minimum": level}
        else:
            schema = {"type": "array", "items": schema}
    return schema


def towers(source: Random, size: int) -> Any:
    """Return combinations of combinations over members of objects."""

    def level(depth: int) -> Any:
        if depth == 0:
            name = source.choice("abcdef")
            bound = source.choice(({"const": source.randint(0, 3)}, {"minimum": 2}, string(source)))
            return {"properties": {name: bound}, "required": [name]}
        word = source.choice(("allOf", "anyOf", "oneOf"))
        return {word: [level(depth - 1) for _ in range(source.randint(2, 4))]}

    return level(min(source.randint(1, 7), max(1, size.bit_length() // 2 - 2)))


def products(source: Random, size: int) -> Any:
    """Return a conjunction of disjunctions."""
    width = source.randint(2, 5)
    kinds = ("const", "minimum", "minLength")
    return {
        "allOf": measured(
            source,
            size,
            lambda n: {
                "anyOf": [
                    {"properties": {f"a{n}": {source.choice(kinds): j}}, "required": [f"a{n}"]}
                    for j in range(width)
                ]
            },
        )
    }


def long_enum(source: Random, size: int) -> Any:
    """Return very many values of one kind."""
    kind = source.choice(("texts", "numbers", "objects", "arrays", "mixed"))

    def value(n: int) -> Any:
        if kind == "mixed":
            return source.choice((n, f"v{n}", [n], {"a": n}, None))
        made = {"texts": any_name(source) + str(n), "numbers": n * 7, "objects": {"a": n, "b": [n]}}
        return made.get(kind, [n, n + 1])

    return source.choice(({}, {"minLength": 3}, {"not": {"const": 3}})) | {
        "enum": measured(source, size, value)
    }


def references(source: Random, size: int) -> Any:
    """Return chains, diamonds and rings of references."""
    count = max(2, size // 90)
    shape = source.choice(("chain", "diamond", "ring", "tree"))

    def body(n: int) -> Any:
        following = [(n + 1) % count if shape == "ring" else n + 1, (2 * n + 1), (2 * n + 2)]
        targets = [t for t in (following[1:] if shape == "tree" else following[:1]) if t < count]
        refs = [{"$ref": f"#/$defs/d{t}"} for t in targets]
        if not refs:
            return {"type": "integer"}
        if shape in ("chain", "ring") and source.random() < 0.5:
            return refs[0]
        return {"type": "object", "properties": {"l": refs[0], "r": refs[-1]}} | (
            {"allOf": refs} if shape == "diamond" and source.random() < 0.3 else {}
        )

    return {"$defs": {f"d{n}": body(n) for n in range(count)}, "$ref": "#/$defs/d0"}


def wide_object(source: Random, size: int) -> Any:
    """Return an object of very many members."""
    parts = measured(source, size, lambda n: {"type": source.choice(TYPES)})
    names = [f"{source.choice(('p', 'name', any_name(source)))}{n}" for n in range(len(parts))]
    schema = {"type": "object", "properties": dict(zip(names, parts, strict=True))}
    schema["required"] = source.sample(names, source.choice((0, 1, len(names) // 2)))
    schema |= source.choice(
        ({}, {"additionalProperties": False}, {"minProperties": 3, "maxProperties": 200})
    )
    return schema


def bounds(source: Random, size: int) -> Any:
    """Return numbers with bounds."""
    word = source.choice(("anyOf", "anyOf", "properties", "allOf", "oneOf"))
    parts = measured(source, size, lambda _: number(source))
    if word == "properties":
        return {"type": "object", word: {f"n{n}": part for n, part in enumerate(parts)}}
    return {word: parts}


def long_numbers(source: Random, size: int) -> Any:
    """Return numbers that are very long or very fine."""
    digits = max(1, min(size // 4, source.choice((10, 30, 400, 20_000))))
    long = "".join(source.choices("123456789", k=digits))
    forms = (
        f'{{"minimum":{long},"maximum":{long}9}}', f'{{"type":"number","maximum":0.{long}}}',
        f'{{"multipleOf":{long}}}', f'{{"const":{long}}}', f'{{"minimum":1e{long[:9]}}}',
        f'{{"type":"integer","multipleOf":{long[:6]},"maximum":{long[:15]}}}',
        f'{{"type":"integer","multipleOf":{long[:4]},"not":{{"multipleOf":{long[:3]}}}}}',
    )  # fmt: skip
    return source.choice(forms)


def arrays(source: Random, size: int) -> Any:
    """Return arrays of arrays that count."""
    schema: Any = mixed(source, min(size, 200), 3)
    for _ in range(source.randint(1, 5)):
        schema = {"type": "array", "items": schema}
        low, high = sorted(source.choices(COUNTS, k=2))
        words = source.sample(("minItems", "maxItems", "contains", "prefixItems"), 2)
        for word in words:
            schema[word] = {
                "minItems": low,
                "maxItems": high,
                "contains": number(source),
                "prefixItems": measured(source, size // 5, lambda _: number(source)),
            }[word]
        if "contains" in words:
            schema["minContains"] = min(low, 64)
    return schema


def dependencies(source: Random, size: int) -> Any:
    """Return members that need each other."""
    names = [f"n{n}" for n in range(max(2, min(size // 60, source.choice((6, 14, 30, 400)))))]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {n: {"type": "integer"} for n in names},
    }
    word = source.choice(("dependentRequired", "dependentSchemas", "if"))
    if word == "if":
        return schema | {
            "allOf": [
                {"if": {"required": [a]}, "then": {"required": [b]}} for a, b in pairwise(names)
            ]
        }
    needed = {n: source.sample(names, min(3, len(names))) for n in names}
    if word == "dependentSchemas":
        return schema | {word: {n: {"required": list(rest)} for n, rest in needed.items()}}
    return schema | {word: needed}


FAMILIES: dict[str, Family] = {
    f.__name__: f
    for f in (
        mixture, patterns_on_properties, one_pattern, many_patterns, pattern_properties, nesting,
        towers, products, long_enum, references, wide_object, bounds, long_numbers, arrays,
        dependencies,
    )
}  # fmt: skip
