"""Small models that propose tokens for a target: what they see of it, and what they answer."""

from ninfer.runtime.models.drafters.drafter import (
    ContextRow,
    Drafter,
    DraftKeys,
    PagedProposal,
    Proposal,
    ProposalRow,
)

__all__ = ["ContextRow", "DraftKeys", "Drafter", "PagedProposal", "Proposal", "ProposalRow"]
