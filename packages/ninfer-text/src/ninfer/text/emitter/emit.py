"""Grammar to EBNF text."""

from __future__ import annotations

from dataclasses import dataclass, field

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.emitter.automaton import lower_automaton
from ninfer.text.emitter.productions import (
    Alternative,
    Body,
    Call,
    OneOf,
    Productions,
    Symbol,
    Text,
    Tokens,
    one_of,
    spell_body,
)
from ninfer.text.grammar import (
    Alternation,
    Automaton,
    Characters,
    Concatenation,
    ExcludedTokens,
    Grammar,
    Literal,
    Node,
    Reference,
    Repetition,
    TokenTerminal,
)

ROOT = "root"


def emit(grammar: Grammar) -> str:
    """Return the core's EBNF text of a grammar.

    Math:    the text describes the grammar's language; equal grammars give equal texts; the size is
             linear in nodes, automaton states, automaton edges and written-out repetitions.
    Effects: the root production is never called, since the core loses tokens that cross the end of
             an inner root.
    """
    lowering = _Lowering(grammar)
    root = lowering.productions.reserve(ROOT)
    lowering.productions.define(root, lowering.body(grammar.entry))
    bodies = lowering.finish()
    return "\n".join(f"{name} ::= {spell_body(body)}" for name, body in bodies.items()) + "\n"


@dataclass(slots=True)
class _Lowering:
    grammar: Grammar
    productions: Productions = field(default_factory=Productions)
    _rules: dict[str, str] = field(default_factory=dict)
    _automata: dict[Dfa, Body] = field(default_factory=dict)
    _stars: dict[Alternative, str] = field(default_factory=dict)
    _pending: list[str] = field(default_factory=list)

    def finish(self) -> dict[str, Body]:
        """Lower every rule that was reached and return all productions."""
        while self._pending:
            rule = self._pending.pop()
            self.productions.define(self._rules[rule], self.body(self.grammar.rules[rule]))
        return self.productions.bodies

    def body(self, node: Node) -> Body:
        match node:
            case Alternation(options):
                bodies = [self.body(option) for option in options]
                return tuple(dict.fromkeys(a for body in bodies for a in body)) or _NOTHING
            case Automaton(dfa):
                if dfa not in self._automata:
                    self._automata[dfa] = lower_automaton(dfa, self.productions) or _NOTHING
                return self._automata[dfa]
            case _:
                return (self._sequence(node),)

    def _sequence(self, node: Node) -> Alternative:
        match node:
            case Literal(text):
                return (Text(text),) if text else ()
            case Characters(members):
                return (one_of(members),)
            case Concatenation(items):
                return tuple(symbol for item in items for symbol in self._sequence(item))
            case Reference(rule):
                return (Call(self._rule(rule)),)
            case TokenTerminal(ids):
                return (Tokens(ids, excluded=False),)
            case ExcludedTokens(ids):
                return (Tokens(ids, excluded=True),)
            case Repetition(item, low, high):
                return self._repetition(item, low, high)
            case Alternation() | Automaton():
                return (self._group(self.body(node)),)

    def _rule(self, rule: str) -> str:
        if rule not in self._rules:
            self._rules[rule] = self.productions.reserve(rule)
            self._pending.append(rule)
        return self._rules[rule]

    def _group(self, body: Body) -> Symbol:
        if len(body) == 1 and len(body[0]) == 1:
            return body[0][0]
        return Call(self.productions.intern(body, "g"))

    def _repetition(self, item: Node, low: int, high: int | None) -> Alternative:
        once = self._sequence(item)
        if high is None:
            return once * low + self._star(once)
        tail: Alternative = ()
        for _ in range(high - low):
            tail = (self._group(((), once + tail)),)
        return once * low + tail

    def _star(self, once: Alternative) -> Alternative:
        if len(once) == 1 and isinstance(once[0], OneOf):
            return (OneOf(once[0].members, starred=True),)
        if len(once) == 1 and isinstance(once[0], Text) and len(once[0].text) == 1:
            return (OneOf(CharacterSet.from_text(once[0].text), starred=True),)
        if once not in self._stars:
            self._stars[once] = self.productions.reserve("many")
            self.productions.define(self._stars[once], ((), (*once, Call(self._stars[once]))))
        return (Call(self._stars[once]),)


_NOTHING: Body = ((OneOf(CharacterSet()),),)
