"""Which rules have a property by their parts: the least fixed point, found in linear time."""

from __future__ import annotations

import random

from ninfer.text.grammar import (
    Alternation,
    Concatenation,
    Literal,
    Node,
    Reference,
    Repetition,
)
from ninfer.text.productive import productive_rules
from ninfer.text.properties import holds, least_rules
from ninfer.text.rows import nullable_rules

NAMES = tuple("abcdefgh")


def random_node(source: random.Random, depth: int = 0) -> Node:
    roll = source.random()
    if depth == 3 or roll < 0.35:
        return Reference(source.choice(NAMES))
    if roll < 0.45:
        return Literal(source.choice(("", "x")))
    below = tuple(random_node(source, depth + 1) for _ in range(source.randint(0, 3)))
    if roll < 0.7:
        return Concatenation(below)
    if roll < 0.93:
        return Alternation(below)
    return Repetition(random_node(source, depth + 1), source.randint(0, 1), 2)


def fixed_point(rules, leaf, sure=frozenset()):
    found = set(sure)
    while more := {n for n, body in rules.items() if n not in found and holds(body, leaf, found)}:
        found |= more
    return found


def is_spelled(node: Node) -> bool:
    return node == Literal("x")


def test_random_rules_have_the_least_fixed_point():
    source = random.Random(8)
    sizes = set()
    for _ in range(3000):
        rules = {name: random_node(source) for name in source.sample(NAMES, len(NAMES))}
        sure = frozenset(source.sample(NAMES, source.randint(0, 2)))
        assert least_rules(rules, is_spelled, sure) == fixed_point(rules, is_spelled, sure)
        assert nullable_rules(rules) == fixed_point(rules, lambda node: node == Literal(""))
        assert productive_rules(rules) == fixed_point(rules, lambda node: True)
        sizes.add(len(least_rules(rules, is_spelled)))
    assert sizes == set(range(len(NAMES) + 1))


def test_a_choice_of_many_waiting_ways_is_read_once():
    read = 0

    def leaf(node: Node) -> bool:
        nonlocal read
        read += 1
        return True

    for count in (100, 1000):
        read = 0
        word, last = Literal("x"), Reference("last")
        ways = Alternation(
            tuple(Concatenation((Reference(f"r{n}"), word, last)) for n in range(count))
        )
        rules = {"root": ways, "last": Reference(f"r{count - 1}")}
        rules |= {f"r{n}": Reference(f"r{n + 1}") for n in range(count - 1)}
        rules |= {f"r{count - 1}": Concatenation((word, word))}
        for order in (rules, dict(reversed(rules.items()))):
            assert least_rules(order, leaf) == rules.keys()
        assert read <= 2 * (count + 2)
