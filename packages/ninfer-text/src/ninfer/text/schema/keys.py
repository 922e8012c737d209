"""Member names that are none of the known ones, exactly, spelled so that masks are shared.

A plain automaton of "any string but these" has a wide state for every letter of every known name,
and the core would build each of those masks anew for each schema. Here a state only lists rules
that all grammars have in common, one for each small group of first characters, so those masks are
built once for a process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from types import MappingProxyType

from ninfer.text.automata.characters import ANY_CHARACTER, CharacterSet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.operations import ANY_TEXT
from ninfer.text.automata.table import canonical
from ninfer.text.grammar import (
    Automaton,
    Characters,
    Literal,
    Node,
    Reference,
    alternation,
    concatenation,
)
from ninfer.text.schema.escaping import BACKSLASH, PLAIN, escape_letters, quoted
from ninfer.text.schema.rules import Rules

_GROUPS = (
    *("abcd", "efgh", "ijklm", "nopq", "rstu", "vwxyz"),
    *("ABCDEFGH", "IJKLMNOPQ", "RSTUVWXYZ", "0123456789"),
    *("_", "-", "$", "@", ".", "/", ":", " "),
)
_LETTERS = frozenset("".join(_GROUPS))
_OTHER = PLAIN - CharacterSet.from_text("".join(_GROUPS))
_QUOTE = Literal('"')

REST = Reference("json_rest")
"""What is left of a string behind one of its characters, the closing quote included."""
_WITHOUT = {group: Reference(f"json_key_without_{n}") for n, group in enumerate(_GROUPS)}
_WITHIN = {group: Reference(f"json_key_within_{n}") for n, group in enumerate(_GROUPS)}
_SINGLE = {c: Reference(f"json_key_{ord(c):02x}") for group in _GROUPS for c in group}
_ELSE = Reference("json_key_else")
_ESCAPE = Reference("json_key_escape")

Trie = dict[str, "Trie"]
"""Known names by characters; the empty text marks the end of one."""


def other_key(known: Iterable[str], rules: Rules) -> Node:
    """Return the quoted strings that are none of the known names.

    Math: a walk down the trie of the known names that leaves it at any character, or ends where no
          name ends; the characters outside the trie are grouped, and every group is a shared rule.
    """
    trie: Trie = {}
    for name in known:
        node = trie
        for character in name:
            node = node.setdefault(character, {})
        node[""] = {}
    rules.share(shared_rules())
    return rules.named(concatenation(_QUOTE, _behind(trie, rules)))


def is_plain(name: str) -> bool:
    """Return whether a name is spelled without escapes."""
    return all(ord(character) in PLAIN for character in name)


def _behind(trie: Trie, rules: Rules) -> Node:
    children = [character for character in trie if character]
    if not children and "" in trie:
        return rules.named(alternation(*_WITHIN.values(), _ELSE, _ESCAPE))
    options = list(_outside(frozenset(children)))
    if "" not in trie:
        options.append(_QUOTE)
    options += [
        concatenation(Literal(character), _behind(trie[character], rules)) for character in children
    ]
    return rules.named(alternation(*options))


def _outside(children: frozenset[str]) -> Iterator[Node]:
    """Yield what a name may go on with that is no child: its next character and all the rest."""
    hit = [group for group in _GROUPS if not children.isdisjoint(group)]
    if len(hit) == 1:
        yield _WITHOUT[hit[0]]
    else:
        yield from (_WITHIN[group] for group in _GROUPS if group not in hit)
    yield from (_SINGLE[c] for group in hit for c in group if c not in children)
    strange = children - _LETTERS
    if strange:
        rest = _OTHER - CharacterSet.from_text("".join(strange))
        yield concatenation(Characters(rest), REST)
    else:
        yield _ELSE
    yield _ESCAPE


@cache
def shared_rules() -> MappingProxyType[str, Node]:
    """Return the rules that all grammars have in common."""
    rules: dict[str, Node] = {
        REST.rule: Automaton(behind_quote(quoted(ANY_TEXT))),
        _ELSE.rule: concatenation(Characters(_OTHER), REST),
        _ESCAPE.rule: concatenation(BACKSLASH, escape_letters(ANY_CHARACTER), REST),
    }
    for group in _GROUPS:
        others = (_WITHIN[other] for other in _GROUPS if other != group)
        rules[_WITHOUT[group].rule] = alternation(*others)
        rules[_WITHIN[group].rule] = concatenation(Characters(CharacterSet.from_text(group)), REST)
        rules.update({_SINGLE[c].rule: concatenation(Literal(c), REST) for c in group})
    return MappingProxyType(rules)


def behind_quote(dfa: Dfa) -> Dfa:
    """Return an automaton of quoted strings without the opening quote."""
    ((_, _, first),) = dfa.edges[0]
    order = [first, *(state for state in range(dfa.state_count) if state != first)]
    number = {state: index for index, state in enumerate(order)}
    edges = [[(a, b, number[t]) for a, b, t in dfa.edges[state]] for state in order]
    return canonical(edges, bytes(dfa.accepting[state] for state in order))
