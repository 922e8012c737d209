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
    Alternation,
    Automaton,
    Characters,
    Concatenation,
    Literal,
    Node,
    Reference,
    alternation,
    concatenation,
)
from ninfer.text.schema.escaping import BACKSLASH, PLAIN, escape_letters, quoted
from ninfer.text.schema.rules import Rules

_FAMILIES = (
    ("abcd", "efgh", "ijklm", "nopq", "rstu", "vwxyz"),
    ("ABCDEFGH", "IJKLMNOPQ", "RSTUVWXYZ"),
    ("0123456789", "_-$@./: "),
)
GROUPS = tuple(group for family in _FAMILIES for group in family)
"""Characters that names often begin or go on with, in small shared groups."""
_LETTERS = frozenset("".join(GROUPS))
_OTHER = PLAIN - CharacterSet.from_text("".join(GROUPS))
_QUOTE = Literal('"')

REST = Reference("json_rest")
"""What is left of a string behind one of its characters, the closing quote included."""
_WITHOUT = {group: Reference(f"json_key_without_{n}") for n, group in enumerate(GROUPS)}
_WITHIN = {group: Reference(f"json_key_within_{n}") for n, group in enumerate(GROUPS)}
_BUT = {c: Reference(f"json_key_but_{ord(c):02x}") for group in GROUPS for c in group}
_NOT = {c: Reference(f"json_key_not_{ord(c):02x}") for group in GROUPS for c in group}
_AWAY = {family: Reference(f"json_key_away_{n}") for n, family in enumerate(_FAMILIES)}
_ELSE = Reference("json_key_else")
_ESCAPE = Reference("json_key_escape")
_MORE = Reference("json_key_more")

Trie = dict[str, "Trie"]
"""Known names by characters; the empty text marks the end of one."""


def other_key(known: Iterable[str], rules: Rules) -> Node:
    """Return the strings that are none of the known names, without the quote that opens them.

    Math: a walk down the trie of the known names that leaves it at any character, or ends where no
          name ends; the characters outside the trie are grouped, and every group is a shared rule.
    """
    trie: Trie = {}
    for name in known:
        node = trie
        for character in name:
            node = node.setdefault(character, {})
        node[""] = {}
    return _behind(trie, rules) if trie else rules.shared(REST, shared_rules())


def is_plain(name: str) -> bool:
    """Return whether a name is spelled without escapes."""
    return all(ord(character) in PLAIN for character in name)


def _behind(trie: Trie, rules: Rules) -> Node:
    """Return what may follow the characters that lead to a place in the trie."""
    run = ""
    while (character := _only_child(trie)) is not None:
        run += character
        trie = trie[character]
    behind = _behind_branch(trie, rules)
    for character in reversed(run):
        behind = _behind_one(character, behind, rules)
    return behind


def _only_child(trie: Trie) -> str | None:
    """Return the one grouped character that goes on from a place where nothing else is."""
    if len(trie) != 1:
        return None
    (character,) = trie
    return character if character in _NOT else None


def _behind_one(character: str, behind: Node, rules: Rules) -> Node:
    """Return what may stand where one character, and what may follow it, is known."""
    beside = rules.shared(_NOT[character], shared_rules())
    read = Concatenation((Literal(character), behind))
    key = (_behind_one, character, behind)
    return rules.keyed(key, lambda: Alternation((beside, read)), is_sure=True)


def _behind_branch(trie: Trie, rules: Rules) -> Node:
    children = [character for character in trie if character]
    if not children:
        return rules.shared(_MORE, shared_rules())
    options = [rules.shared(node, shared_rules()) for node in _outside(frozenset(children))]
    options += [] if "" in trie else [_QUOTE]
    options += [
        concatenation(Literal(character), _behind(trie[character], rules)) for character in children
    ]
    return rules.named(alternation(*options), is_sure=True)


def _outside(children: frozenset[str]) -> Iterator[Node]:
    """Yield what a name may go on with that is no child: its next character and all the rest."""
    hit = [group for group in GROUPS if not children.isdisjoint(group)]
    strange = children - _LETTERS
    if len(hit) == 1 and not strange:
        yield _WITHOUT[hit[0]]
    else:
        yield from (_WITHIN[group] for group in GROUPS if group not in hit)
        yield from (_beside(strange), _ESCAPE)
    for group in hit:
        left = "".join(c for c in group if c not in children)
        if len(left) == len(group) - 1:
            (missing,) = set(group) - set(left)
            yield _BUT[missing]
        elif left:
            yield _beginning(left)


def _beginning(characters: str) -> Node:
    """Return the names, without the opening quote, that begin with one of some characters."""
    return concatenation(Characters(CharacterSet.from_text(characters)), REST)


def _beside(strange: frozenset[str]) -> Node:
    """Return the names that begin with a character of no group."""
    if not strange:
        return _ELSE
    rest = _OTHER - CharacterSet.from_text("".join(strange))
    return concatenation(Characters(rest), REST)


@cache
def shared_rules() -> MappingProxyType[str, Node]:
    """Return the rules that all grammars have in common."""
    rules: dict[str, Node] = {
        REST.rule: Automaton(behind_quote(quoted(ANY_TEXT))),
        _ELSE.rule: concatenation(Characters(_OTHER), REST),
        _ESCAPE.rule: concatenation(BACKSLASH, escape_letters(ANY_CHARACTER), REST),
    }
    for family in _FAMILIES:
        outside = [_WITHIN[group] for group in GROUPS if group not in family]
        rules[_AWAY[family].rule] = alternation(*outside, _ELSE, _ESCAPE)
        for group in family:
            others = (_WITHIN[other] for other in family if other != group)
            rules[_WITHOUT[group].rule] = alternation(*others, _AWAY[family])
    for group in GROUPS:
        rules[_WITHIN[group].rule] = _beginning(group)
        for c in group:
            rules[_BUT[c].rule] = _beginning(group.replace(c, ""))
            rules[_NOT[c].rule] = alternation(*_outside(frozenset(c)), _QUOTE)
    rules[_MORE.rule] = alternation(*_WITHIN.values(), _ELSE, _ESCAPE)
    return MappingProxyType(rules)


def behind_quote(dfa: Dfa) -> Dfa:
    """Return an automaton of quoted strings without the opening quote."""
    ((_, _, first),) = dfa.edges[0]
    order = [first, *(state for state in range(dfa.state_count) if state != first)]
    number = {state: index for index, state in enumerate(order)}
    edges = [[(a, b, number[t]) for a, b, t in dfa.edges[state]] for state in order]
    return canonical(edges, bytes(dfa.accepting[state] for state in order))
