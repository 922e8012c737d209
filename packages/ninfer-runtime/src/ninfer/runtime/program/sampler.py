"""From hidden states to sampled tokens, through the ops' one contract."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ninfer.contract import RngPurpose
from ninfer.ops import (
    RowStatus,
    SamplingBatch,
    SamplingRow,
    SparseProposal,
    count_tokens,
    masked_sampling,
    require_ok,
    speculative_acceptance,
)
from ninfer.runtime.program.mask_buffer import RoundMasks
from ninfer.runtime.program.sequence import ResidentSequence


class Sampler:
    """Owns the penalty counts of every row and the packed parameters of a round.

    Shapes: counts int32[rows, V].
    """

    def __init__(self, rows: int, token_domain: int, device: torch.device) -> None:
        self._token_domain = token_domain
        self._device = device
        self._counts = torch.zeros((rows, token_domain), dtype=torch.int32, device=device)
        self._batch = SamplingBatch.empty(rows, device)

    @property
    def counts(self) -> Tensor:
        """Return the penalties' table, int32[rows, V], at its address."""
        return self._counts

    def sample(
        self,
        logits: Tensor,
        sequences: Sequence[ResidentSequence],
        masks: RoundMasks,
        purpose: RngPurpose,
    ) -> list[int | None]:
        """Return one token per row, or None where a row's mask allows nothing.

        Shapes: logits float32[B, ≥ V].
        Math:   the logical position of a token is its place in the ledger.
        Raises: NonFiniteLogits — the best allowed logit of a row is not finite.
        """
        batch, counts = self._records(sequences, masks, purpose)
        words = None if masks.words is None else masks.words[:, 0]
        sampled = masked_sampling(logits[:, : self._token_domain], batch, words, counts)
        tokens = zip(sampled.tokens.tolist(), sampled.status.tolist(), strict=True)
        return [
            None if meets_dead_end(row, status, 1, masks) else token
            for row, (token, status) in enumerate(tokens)
        ]

    def accept(
        self,
        logits: Tensor,
        sequences: Sequence[ResidentSequence],
        masks: RoundMasks,
        drafts: Sequence[Sequence[int]],
        distribution: SparseProposal | None,
    ) -> list[list[int] | None]:
        """Return the licensed tokens per row, or None where its path met a dead end.

        Shapes: logits float32[B, P, ≥ V], P one more than the longest of ``drafts``.
        Raises: NonFiniteLogits — the best allowed logit of a column really taken is not finite.
        """
        batch, counts = self._records(sequences, masks, RngPurpose.DECODE)
        limit = logits.shape[1] - 1
        padded = [[*row, *[0] * (limit - len(row))] for row in drafts]
        accepted = speculative_acceptance(
            logits[..., : self._token_domain],
            batch,
            torch.tensor(padded, dtype=torch.int64, device=self._device),
            torch.tensor([len(row) for row in drafts], dtype=torch.int32, device=self._device),
            proposal=distribution,
            masks=masks.words,
            counts=counts,
        )
        outcomes: list[list[int] | None] = []
        licensed = zip(
            accepted.tokens.tolist(),
            accepted.accepted.tolist(),
            accepted.status.tolist(),
            strict=True,
        )
        for row, (tokens, count, status) in enumerate(licensed):
            dead = meets_dead_end(row, status, count + 1, masks)
            outcomes.append(None if dead else tokens[: count + 1])
        return outcomes

    def _records(
        self, sequences: Sequence[ResidentSequence], masks: RoundMasks, purpose: RngPurpose
    ) -> tuple[SamplingBatch, Tensor | None]:
        rows = [
            SamplingRow(
                sequence.sampling,
                position=len(sequence.ledger),
                purpose=purpose,
                constrained=masks.is_constrained(b),
                counts_row=sequence.row,
            )
            for b, sequence in enumerate(sequences)
        ]
        self._batch.write(rows)
        penalised = any(row.is_penalised for row in rows)
        return self._batch.first(len(rows)), self._counts if penalised else None

    def count(self, sequences: Sequence[ResidentSequence], tokens: Sequence[Sequence[int]]) -> None:
        """Add committed generated tokens to the counts of rows whose parameters read them."""
        added = [
            (sequence.row, ids)
            for sequence, ids in zip(sequences, tokens, strict=True)
            if ids and _is_penalised(sequence)
        ]
        if not added:
            return
        longest = max(len(ids) for _, ids in added)
        padded = [[*ids, *[0] * (longest - len(ids))] for _, ids in added]
        count_tokens(
            self._counts,
            torch.tensor([row for row, _ in added], device=self._device),
            torch.tensor(padded, device=self._device),
            torch.tensor([len(ids) for _, ids in added], device=self._device),
        )

    def reset(self, sequence: ResidentSequence) -> None:
        """Set the counts of a sequence's row to what its ledger says."""
        self._counts[sequence.row].zero_()
        self.count([sequence], [sequence.ledger[sequence.prompt_tokens :]])


def _is_penalised(sequence: ResidentSequence) -> bool:
    chosen = sequence.sampling
    return chosen.presence_penalty != 0 or chosen.frequency_penalty != 0


def meets_dead_end(row: int, status: int, licensed_tokens: int, masks: RoundMasks) -> bool:
    """Return whether a row's licensed path met a dead end; any other refusal is an error."""
    if masks.is_dead(row, licensed_tokens):
        return True
    if status == RowStatus.EMPTY_SET and masks.is_constrained(row):
        return True
    require_ok(status, row)
    return False
