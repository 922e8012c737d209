"""Loops in different contexts: a production for each call, so that each knows what follows it.

The core tries, at every mask, the tokens that may end a loop and go on behind it, such as those
that end a string. Where a loop is called once, with something behind it that is never empty, the
core decides all of them once. Where it is called in a few contexts, few tokens are left.
"""

from __future__ import annotations

from ninfer.text.emitter.follow import OPAQUE, FollowAnalysis, Following, Site
from ninfer.text.emitter.productions import Body, Call, Expression, Productions

_ALONE_LIMIT = 8
"""Calls of one loop that get a production of their own: each costs the core a tenth of a ms."""
_GROUP_LIMIT = 6
_WIDENING = 1
"""Intervals of characters by which what follows may grow to share another context's production."""
_PATTERN_LIMIT = 1_024
"""Characters: longer expressions cost the core more to compile than masks would give back."""


def split_contexts(productions: Productions) -> dict[str, Following]:
    """Give the calls of loops productions of their own; return what follows every production.

    Effects: adds productions and changes calls in bodies; the language stays.
    """
    return _Splitting(productions).run()


class _Splitting:
    def __init__(self, productions: Productions) -> None:
        self._productions = productions
        self._names = list(productions.bodies)
        self._loops = [n for n, body in enumerate(productions.bodies.values()) if _is_loop(body)]
        self._analysis = FollowAnalysis(productions, self._loops)
        self._following = dict(zip(self._names, self._analysis.following(), strict=True))
        self._calls: dict[tuple[int, int], dict[int, str]] = {}

    def run(self) -> dict[str, Following]:
        for number in self._loops:
            self._split(number, self._analysis.sites[number])
        for (caller, way), places in self._calls.items():
            self._redirect(self._names[caller], way, places)
        return self._following

    def _split(self, number: int, sites: list[Site]) -> None:
        alone = [site for site in sites if site.is_certain][:_ALONE_LIMIT]
        together = [site for site in sites if site not in alone]
        parts = [*_grouped(self._analysis, together), *([site] for site in alone)]
        owner = self._names[number]
        for count, part in enumerate(parts):
            name = self._add(owner, part) if count else owner
            self._following[name] = self._analysis.following_at(part)

    def _add(self, owner: str, sites: list[Site]) -> str:
        """Return a copy of a production that the sites call from now on."""
        name = self._productions.part(owner)
        self._productions.bodies[name] = self._productions.bodies[owner]
        for site in sites:
            self._calls.setdefault((site.caller, site.way), {})[site.place] = name
        return name

    def _redirect(self, caller: str, way: int, places: dict[int, str]) -> None:
        body = self._productions.bodies[caller]
        symbols = tuple(
            Call(places[place]) if place in places else symbol
            for place, symbol in enumerate(body[way])
        )
        self._productions.bodies[caller] = (*body[:way], symbols, *body[way + 1 :])


def _is_loop(body: Body) -> bool:
    if len(body) != 1 or len(body[0]) != 1:
        return False
    (symbol,) = body[0]
    # Where it is an operator: as a character it is escaped.
    return (
        isinstance(symbol, Expression)
        and "*" in symbol.pattern
        and len(symbol.pattern) <= _PATTERN_LIMIT
    )


def _grouped(analysis: FollowAnalysis, sites: list[Site]) -> list[list[Site]]:
    """Return the calls by what follows them, the widest first; near ones are one group."""
    contexts: dict[int, list[Site]] = {}
    for site in sites:
        contexts.setdefault(analysis.behind(site), []).append(site)
    groups: dict[int, list[Site]] = {}
    for mask in sorted(contexts, key=_width, reverse=True):
        near = next((wide for wide in groups if _is_near(mask, wide)), None)
        if near is None and len(groups) == _GROUP_LIMIT:
            near = next(iter(groups))
        groups.setdefault(mask if near is None else near, []).extend(contexts[mask])
    return list(groups.values())


def _is_near(mask: int, wide: int) -> bool:
    """Return whether a context is covered by another that is nearly as wide."""
    return mask | wide == wide and _width(wide) - _width(mask) <= _WIDENING


def _width(mask: int) -> int:
    return 1 << 20 if mask == OPAQUE else mask.bit_count()
