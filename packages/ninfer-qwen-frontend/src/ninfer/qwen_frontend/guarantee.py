"""What a constrained session is held to, and what is reported of it."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.contract import CacheOutcome, ConstraintBranch, ConstraintReport, TokenMatcher


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A matcher and how it came to be.

    Units: ``prepare_seconds`` of compiling and starting the matcher.
    """

    matcher: TokenMatcher
    cache: CacheOutcome
    prepare_seconds: float = 0.0
    timings: bool = False

    def report(self, branch: ConstraintBranch, matcher_seconds: float) -> ConstraintReport:
        """Return what was enforced so far; positions and uploads are the engine's to add."""
        complete = self.matcher.terminated or self.matcher.can_end
        if complete and branch is ConstraintBranch.UNDECIDED:
            branch = ConstraintBranch.CONTENT
        return ConstraintReport(
            branch=branch,
            complete=complete,
            terminated=self.matcher.terminated,
            cache=self.cache,
            timings_collected=self.timings,
            prepare_seconds=self.prepare_seconds if self.timings else 0.0,
            matcher_seconds=matcher_seconds if self.timings else 0.0,
        )
