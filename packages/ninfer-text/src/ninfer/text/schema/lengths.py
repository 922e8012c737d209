"""Length bounds on automata, without the cost of a general product.

A state of the result is a state and the characters read so far; only those from which a word of a
fitting length remains are made.
"""

from __future__ import annotations

from ninfer.text.automata.dfa import NOTHING, Dfa, Edge
from ninfer.text.automata.facts import longest_characters
from ninfer.text.automata.limits import CHARACTER_LIMIT, AutomatonLimit, Work
from ninfer.text.automata.table import canonical


def has_word(dfa: Dfa, low: int, high: int | None, work: Work) -> bool:
    """Return whether a trimmed automaton has a word of ``low`` to ``high`` characters.

    Math:   where a word of at least ``low`` characters exists, one of at most ``low`` + states
            does.
    Raises: AutomatonLimit — ``low`` is over the character limit and words have no longest one, or
            no steps are left.
    """
    longest = longest_characters(dfa)
    if longest is not None and longest < low:
        return False
    if low > CHARACTER_LIMIT:
        raise AutomatonLimit.characters()
    last = low + dfa.state_count if high is None else min(high, low + dfa.state_count)
    current = {0}
    for length in range(last + 1):
        if length >= low and any(dfa.accepting[state] for state in current):
            return True
        work.spend(1 + sum(len(dfa.edges[state]) for state in current))
        current = {target for state in current for _, _, target in dfa.edges[state]}
        if not current:
            return False
    return False


def with_length(dfa: Dfa, low: int, high: int | None, limit: int) -> Dfa:
    """Return the words of ``low`` to ``high`` characters of a trimmed automaton.

    Raises: AutomatonLimit — a bound over the character limit, or more than ``limit`` edges.
    """
    if max(low, high or 0) > CHARACTER_LIMIT:
        raise AutomatonLimit.characters()
    last = low if high is None else high
    if last * max(len(edges) for edges in dfa.edges) > limit:
        raise AutomatonLimit("automaton edges", limit)
    to_end = _distances(dfa)
    numbers = {(0, 0): 0}
    order = [(0, 0)]
    rows: list[list[Edge]] = []
    accepting = bytearray()
    total = 0
    for state, length in order:
        row: list[Edge] = []
        after = length + 1 if high is not None else min(length + 1, low)
        if high is None or length < high:
            for first, final, target in dfa.edges[state]:
                if high is not None and after + to_end[target] > high:
                    continue
                key = (target, after)
                if key not in numbers:
                    numbers[key] = len(order)
                    order.append(key)
                row.append((first, final, numbers[key]))
        rows.append(row)
        accepting.append(dfa.accepting[state] and length >= low)
        total += len(row)
        if total > limit:
            raise AutomatonLimit("automaton edges", limit)
    return _trimmed(rows, accepting)


def _distances(dfa: Dfa) -> list[int]:
    """Return the length of a shortest rest for every state."""
    sources: list[list[int]] = [[] for _ in dfa.edges]
    for state, edges in enumerate(dfa.edges):
        for _, _, target in edges:
            sources[target].append(state)
    distances = [0 if final else -1 for final in dfa.accepting]
    layer = [state for state, final in enumerate(dfa.accepting) if final]
    while layer:
        following = []
        for state in layer:
            for source in sources[state]:
                if distances[source] < 0:
                    distances[source] = distances[state] + 1
                    following.append(source)
        layer = following
    return distances


def _trimmed(rows: list[list[Edge]], accepting: bytearray) -> Dfa:
    """Return the automaton without states that cannot accept any more."""
    sources: list[list[int]] = [[] for _ in rows]
    for state, row in enumerate(rows):
        for _, _, target in row:
            sources[target].append(state)
    living = {state for state, final in enumerate(accepting) if final}
    pending = list(living)
    while pending:
        for source in sources[pending.pop()]:
            if source not in living:
                living.add(source)
                pending.append(source)
    if 0 not in living:
        return NOTHING
    return canonical([[edge for edge in row if edge[2] in living] for row in rows], accepting)
