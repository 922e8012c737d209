"""Grammar nodes to productions: groups get names, repetitions and automata their cheapest form."""

from __future__ import annotations

from dataclasses import dataclass, field

from ninfer.text.automata.characters import CharacterSet
from ninfer.text.automata.dfa import Dfa
from ninfer.text.automata.words import word_automaton
from ninfer.text.emitter.automaton import automaton_body
from ninfer.text.emitter.productions import (
    NOTHING,
    Alternative,
    Body,
    Call,
    Counted,
    Expression,
    Machine,
    OneOf,
    Productions,
    Symbol,
    Text,
    Tokens,
    one_of,
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

_WORDS_FROM = 8
"""Texts side by side from which they become one automaton."""
_WRITTEN_OUT_LIMIT = 64
"""Symbols of a repetition that are written out without a production of their own."""
_COUNTED_FROM = 4_096
"""Copies from which the core counts: its counting costs a scan at every mask."""
_RUN_FROM = 4
"""Copies of one class in front of a text from which the core counts: a negated class, in a sequence
by itself, keeps one state for all of them, with one mask; other spellings have a state a copy."""


def lower(grammar: Grammar, root: str) -> Productions:
    """Return the productions of a grammar; ``root`` is the name of its entry, which nothing calls.

    Effects: rules that the entry does not reach are left out.
    """
    lowering = _Lowering(grammar, root)
    name = lowering.productions.reserve(root)
    lowering.productions.define(name, lowering.body(grammar.entry))
    return lowering.finish()


@dataclass(slots=True)
class _Lowering:
    grammar: Grammar
    _owner: str
    productions: Productions = field(default_factory=Productions)
    _rules: dict[str, str] = field(default_factory=dict)
    _automata: dict[Dfa, Body] = field(default_factory=dict)
    _stars: dict[Alternative, str] = field(default_factory=dict)
    _pending: list[str] = field(default_factory=list)

    def finish(self) -> Productions:
        """Lower every rule that was reached and return all productions."""
        while self._pending:
            rule = self._pending.pop()
            self._owner = self._rules[rule]
            self.productions.define(self._owner, self.body(self.grammar.rules[rule]))
        return self.productions

    def body(self, node: Node) -> Body:
        if type(node) is Alternation:
            return self._alternation(node.options)
        if type(node) is Automaton:
            return self._automaton(node.dfa)
        return (self._sequence(node),)

    def _alternation(self, options: tuple[Node, ...]) -> Body:
        distinct: dict[Alternative, None] = {}
        for option in _gathered(options):
            distinct.update(dict.fromkeys(self.body(option)))
        if len(distinct) > 1:
            return tuple(map(self._set_apart, distinct))
        return tuple(distinct) or NOTHING

    def _automaton(self, dfa: Dfa) -> Body:
        if dfa not in self._automata:
            form = automaton_body(dfa)
            if isinstance(form, Machine):
                form = ((Call(self.productions.add_machine(form)),),)
            self._automata[dfa] = form
        return self._automata[dfa]

    def _sequence(self, node: Node) -> Alternative:
        # By exact type, most frequent first: every node of every grammar passes here.
        if type(node) is Reference:
            return (Call(self._rule(node.rule)),)
        if type(node) is Literal:
            return (Text(node.text),) if node.text else ()
        if type(node) is Concatenation:
            return self._concatenation(node.items)
        if type(node) is Characters:
            return (one_of(node.members),)
        if type(node) is Repetition:
            return self._repetition(node, ())
        if type(node) is TokenTerminal:
            return (Tokens(node.ids, excluded=False),)
        if type(node) is ExcludedTokens:
            return (Tokens(node.ids, excluded=True),)
        return (self._group(self.body(node)),)

    def _concatenation(self, items: tuple[Node, ...]) -> Alternative:
        symbols: Alternative = ()
        for item in reversed(items):
            if type(item) is Repetition:
                symbols = self._repetition(item, symbols) + symbols
            else:
                symbols = self._sequence(item) + symbols
        return symbols

    def _rule(self, rule: str) -> str:
        if rule not in self._rules:
            self._rules[rule] = self.productions.reserve(rule)
            self._pending.append(rule)
        return self._rules[rule]

    def _group(self, body: Body) -> Symbol:
        # An expression gets a production, so that equal ones are one, with what follows them all.
        if len(body) == 1 and len(body[0]) == 1 and not isinstance(body[0][0], Expression):
            return body[0][0]
        return Call(self.productions.intern(body, self._owner))

    def _repetition(self, node: Repetition, rest: Alternative) -> Alternative:
        """Return the symbols of a repetition that ``rest`` follows in the same sequence."""
        low, high = node.low, node.high
        once = self._sequence(node.item)
        if len(once) * (high or low) > _WRITTEN_OUT_LIMIT:
            once = (self._one_symbol(once),)
        if high is None:
            return (*self._copies(once, low), *self._star(once))
        characters = _characters(once)
        if characters is not None and high > _RUN_FROM and _ends_run(characters, rest):
            return (Counted(self._run_character(characters), low, high),)
        if high > _COUNTED_FROM:
            return (Counted(_countable(self._one_symbol(once)), low, high),)
        if characters is not None and high - low > 1:
            return self._sequence(Automaton(_chain(characters, low, high)))
        tail: Alternative = ()
        for _ in range(high - low):
            tail = (self._group(((), once + tail)),)
        return once * low + tail

    def _set_apart(self, alternative: Alternative) -> Alternative:
        """Return a counted sequence as a production of its own, where its count is cheap."""
        for symbol in alternative:
            if type(symbol) is Counted:
                return (Call(self.productions.intern((alternative,), self._owner)),)
        return alternative

    def _run_character(self, members: CharacterSet) -> Call:
        return Call(self.productions.intern(((OneOf(members, negated=True),),), self._owner))

    def _copies(self, once: Alternative, count: int) -> Alternative:
        if count > _COUNTED_FROM:
            return (Counted(_countable(self._one_symbol(once)), count, count),)
        return once * count

    def _one_symbol(self, once: Alternative) -> Symbol:
        if len(once) == 1 and isinstance(once[0], OneOf | Call):
            return once[0]
        return Call(self.productions.intern((once,), self._owner))

    def _star(self, once: Alternative) -> Alternative:
        characters = _characters(once)
        if characters is not None:
            return (OneOf(characters, starred=True),)
        if once not in self._stars:
            self._stars[once] = self.productions.part(self._owner)
            self.productions.define(self._stars[once], ((), (*once, Call(self._stars[once]))))
        return (Call(self._stars[once]),)


def _gathered(options: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the options with all single characters as one class, many texts as one automaton."""
    kinds = [type(option) for option in options]
    if kinds.count(Characters) > 1:
        classes = (option.members for option in options if isinstance(option, Characters))
        union = CharacterSet.of(r for members in classes for r in members.ranges)
        options = (Characters(union), *(o for o in options if not isinstance(o, Characters)))
    if kinds.count(Literal) < _WORDS_FROM:
        return options
    texts = {option.text for option in options if isinstance(option, Literal)}
    others = (option for option in options if not isinstance(option, Literal))
    return (Automaton(word_automaton(sorted(texts))), *others)


def _characters(once: Alternative) -> CharacterSet | None:
    """Return the set when a sequence is always exactly one character."""
    match once:
        case (OneOf(members, False),):
            return members
        case (Text(text),) if len(text) == 1:
            return CharacterSet.from_text(text)
        case _:
            return None


def _ends_run(members: CharacterSet, rest: Alternative) -> bool:
    """Return whether a text follows that no member begins: only then does the core count."""
    return bool(rest) and isinstance(rest[0], Text) and ord(rest[0].text[0]) not in members


def _chain(members: CharacterSet, low: int, high: int) -> Dfa:
    """Return the automaton of ``low`` to ``high`` characters of a set."""
    edges = [tuple((a, b, state + 1) for a, b in members.ranges) for state in range(high)]
    return Dfa((*edges, ()), bytes(state >= low for state in range(high + 1)))


def _countable(symbol: Symbol) -> OneOf | Call:
    if isinstance(symbol, OneOf | Call):
        return symbol
    raise TypeError(f"the core cannot count {symbol}")
