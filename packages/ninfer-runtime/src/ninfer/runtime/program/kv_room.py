"""The pages of a pool, shared between live sequences and cached prefixes.

Cached prefixes never stand in the way: they are evicted for room, and for the run of pages that a
growing sequence would otherwise lose.
"""

from __future__ import annotations

from collections.abc import Sequence

from ninfer.runtime.models.kv_group import KvGroup
from ninfer.runtime.models.kv_pool import PAGE_TOKENS, KvPool, SlotMap
from ninfer.runtime.program.pages import PageAllocator
from ninfer.runtime.program.prefix_cache import CachedPrefix, PrefixCache
from ninfer.runtime.program.recurrent_checkpoints import RecurrentCheckpoints


def pages_for(tokens: int) -> int:
    """Return how many pages hold so many tokens."""
    return -(-tokens // PAGE_TOKENS)


class KvRoom:
    """Gives pages to sequences and takes them back.

    Cached prefixes of a hybrid model own ``checkpoints``, and are of no use without any.
    """

    def __init__(
        self, pool: KvPool | KvGroup, pages: int, checkpoints: RecurrentCheckpoints | None = None
    ) -> None:
        self._pool = pool
        self._checkpoints = checkpoints
        self._allocator = PageAllocator(pages)
        self.prefixes = PrefixCache()

    @property
    def capacity_pages(self) -> int:
        """Return all pages."""
        return self._allocator.capacity

    @property
    def available_pages(self) -> int:
        """Return pages that are free or only cached."""
        return self._allocator.free_pages + self.prefixes.pages

    @property
    def used_pages(self) -> int:
        """Return pages that live sequences or cached prefixes hold."""
        return self._allocator.capacity - self._allocator.free_pages

    def take(self, tokens: int) -> list[int]:
        """Return pages for a new sequence of so many tokens.

        Raises: IntegrityError — not even evicting every cached prefix makes the room.
        """
        return self._take(pages_for(tokens), spare=None)

    def take_with_prefix(self, tokens: int, prefix: CachedPrefix, reused: int) -> list[int]:
        """Return pages for a new sequence whose first ``reused`` tokens come from a prefix.

        Effects: the prefix, cached or live, is copied; where there is no room beside a cached one,
                 its pages become the sequence's own.
        Raises:  IntegrityError — not even evicting every cached prefix makes the room.
        """
        wanted = pages_for(tokens)
        is_cached = prefix in self.prefixes
        if is_cached and self.available_pages - len(prefix.pages) < wanted:
            return self._adopt(wanted, self.prefixes.remove(prefix))
        pages = self._take(wanted, spare=prefix)
        source = SlotMap(prefix.pages).slots(0, reused)
        self._pool.copy(source, SlotMap(pages).slots(0, reused))
        return pages

    def grow(self, owned: Sequence[int], tokens: int) -> list[int]:
        """Return the pages that a sequence of so many tokens needs beyond its own.

        Raises: IntegrityError — not even evicting every cached prefix makes the room.
        """
        missing = pages_for(tokens) - len(owned)
        if missing <= 0:
            return []
        for page in range(owned[-1] + 1, min(owned[-1] + 1 + missing, self.capacity_pages)):
            owner = None if self._allocator.is_free(page) else self.prefixes.owner_of(page)
            if owner is not None:
                self._evict(owner)
        self._evict_until(missing, spare=None)
        return self._allocator.extend(owned, missing)

    def give_back(self, pages: Sequence[int]) -> None:
        """Make pages free again."""
        self._allocator.give_back(pages)

    def keep(self, prefix: CachedPrefix) -> None:
        """Cache a prefix; pages beyond its tokens and those of superfluous prefixes go back."""
        needed = pages_for(len(prefix.tokens))
        self.give_back(prefix.pages[needed:])
        prefix.pages = prefix.pages[:needed]
        for superfluous in self.prefixes.keep(prefix):
            self.drop(superfluous)
        if self._checkpoints is not None:
            for useless in [p for p in self.prefixes if not p.kept_checkpoints]:
                self._evict(useless)

    def drop(self, prefix: CachedPrefix) -> None:
        """Take back what a prefix that is not cached owns."""
        self.give_back(prefix.pages)
        if self._checkpoints is not None:
            self._checkpoints.forget(prefix.checkpoints.values())

    def _take(self, pages: int, spare: CachedPrefix | None) -> list[int]:
        self._evict_until(pages, spare)
        while not self._allocator.has_run(pages):
            oldest = self.prefixes.oldest(spare=spare)
            if oldest is None:
                break
            self._evict(oldest)
        return self._allocator.take(pages)

    def _adopt(self, pages: int, prefix: CachedPrefix) -> list[int]:
        own, prefix.pages = prefix.pages[:pages], prefix.pages[pages:]
        self.drop(prefix)
        missing = pages - len(own)
        if missing:
            self._evict_until(missing, spare=None)
            own = own + self._allocator.extend(own, missing)
        return own

    def _evict_until(self, pages: int, spare: CachedPrefix | None) -> None:
        while self._allocator.free_pages < pages:
            oldest = self.prefixes.oldest(spare=spare)
            if oldest is None:
                return
            self._evict(oldest)

    def _evict(self, prefix: CachedPrefix) -> None:
        self.drop(self.prefixes.remove(prefix))
