"""The ordered best candidates of logit rows, ties to the lower id."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ninfer.contract import TOP_K_LIMIT
from ninfer.ops.reference.logits import spread_bits
from ninfer.ops.status import RowStatus

_BLOCK = 32
_FIRST_BLOCKS = 64
_LOWEST_KEY = -(1 << 63)


class Candidates(NamedTuple):
    """The best allowed tokens of N columns, best first.

    Shapes: values float32[N, 20]; ids int64[N, 20], -1 where there is no candidate; status
            int32[N].
    """

    values: Tensor
    ids: Tensor
    status: Tensor


def best_of_row(row: Tensor, limit: int, words: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return values and ids of the ``limit`` best allowed tokens of one CPU row.

    Math:   an element among the best lies in one of the best blocks of 32 tokens, which are the
            tokens of one mask word. Without a mask those are the ``limit`` first blocks, ordered
            by maximum and then by place. With one, a block's maximum over all its tokens bounds
            its allowed ones: ever more blocks are looked at until the rest cannot reach the
            ``limit``-th value found.
    Shapes: row float32[V]; words int32[W] or None; returns float32[limit'], int64[limit'],
            limit' <= limit. A best value that is not finite comes alone, an empty set as nothing.
    """
    maxima = _block_maxima(row)
    if words is not None:
        return _best_allowed(row, limit, words, maxima)
    best = maxima.topk(min(limit, maxima.shape[0])).values
    if not bool(torch.isfinite(best[0])):
        return best[:1], torch.zeros(1, dtype=torch.int64)
    ids = _tokens_of(_first_at_least(maxima, best[-1], best.shape[0]), row.shape[0])
    return _ordered(row[ids], ids, limit)


def _best_allowed(row: Tensor, limit: int, words: Tensor, maxima: Tensor) -> tuple[Tensor, Tensor]:
    empty = words == 0
    if bool(empty.all()):
        return row[:0], torch.zeros(0, dtype=torch.int64)
    # A NaN may belong to a token that is not allowed; as an upper bound it is infinite.
    bounds = maxima.nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf)
    bounds.masked_fill_(empty, -torch.inf)
    blocks = _FIRST_BLOCKS
    while True:
        best = bounds.topk(min(blocks, bounds.shape[0]))
        chosen = best.indices.sort().values
        ids = _tokens_of(chosen, row.shape[0])
        allowed = spread_bits(words[chosen]).flatten()[: ids.shape[0]]
        values = row[ids].masked_fill_(~allowed, -torch.inf)
        found = values.topk(min(limit, values.shape[0])).values
        rest = float(best.values[-1])
        if not bool(found[0] < torch.inf):
            return found[:1], torch.zeros(1, dtype=torch.int64)
        if rest < float(found[-1]) or rest == -torch.inf or best.values.shape == bounds.shape:
            return _ordered(values, ids, limit)
        blocks *= 8


def _tokens_of(blocks: Tensor, token_domain: int) -> Tensor:
    """Return the ids of ascending blocks, in order."""
    ids = (blocks.unsqueeze(1) * _BLOCK + torch.arange(_BLOCK)).flatten()
    return ids[ids < token_domain] if int(ids[-1]) >= token_domain else ids


def _ordered(values: Tensor, ids: Tensor, limit: int) -> tuple[Tensor, Tensor]:
    """Return the best values in order with their ids; ``ids`` ascend."""
    cut = values.topk(min(limit, values.shape[0])).values
    kept = _first_at_least(values, cut[-1], cut.shape[0])
    ordered, order = values[kept].sort(descending=True, stable=True)
    return ordered, ids[kept][order]


def best_of_rows(logits: Tensor, keep: Tensor | None) -> Candidates:
    """Return the candidates of every row without waiting for the device.

    Math:   one 64-bit key a token: the float's bits in numeric order (zeros alike, every NaN on
            top), then the complement of the id; the keys are distinct, so their order is total.
    Shapes: logits float32[N, V]; keep bool[N, V] or None.
    """
    keys = _keys(logits)
    if keep is not None:
        keys = torch.where(keep, keys, _LOWEST_KEY)
    best = keys.topk(min(TOP_K_LIMIT, keys.shape[1]), dim=1).values
    exists = best != _LOWEST_KEY
    ids = 0x7FFFFFFF - (best & 0x7FFFFFFF)
    values = logits.gather(1, torch.where(exists, ids, 0))
    first = values[:, 0]
    status = torch.where(torch.isfinite(first), RowStatus.OK, RowStatus.NON_FINITE)
    status = torch.where(exists[:, 0], status, RowStatus.EMPTY_SET).to(torch.int32)
    usable = exists & (values != -torch.inf)
    return _padded(torch.where(usable, values, -torch.inf), torch.where(usable, ids, -1), status)


def _keys(logits: Tensor) -> Tensor:
    # Adding zero turns -0 into +0, so that both tie.
    bits = (logits + 0.0).view(torch.int32)
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    ordered = torch.where(torch.isnan(logits), 0x7FFFFFFF, ordered)
    ids = torch.arange(logits.shape[1], device=logits.device)
    return (ordered.to(torch.int64) << 32) | (0x7FFFFFFF - ids)


def _padded(values: Tensor, ids: Tensor, status: Tensor) -> Candidates:
    missing = TOP_K_LIMIT - values.shape[1]
    if missing:
        values = torch.nn.functional.pad(values, (0, missing), value=-torch.inf)
        ids = torch.nn.functional.pad(ids, (0, missing), value=-1)
    return Candidates(values, ids, status)


def _block_maxima(row: Tensor) -> Tensor:
    whole = row.shape[0] // _BLOCK * _BLOCK
    parts = []
    if whole:
        parts.append(row[:whole].view(-1, _BLOCK).amax(1))
    if whole < row.shape[0]:
        parts.append(row[whole:].amax().view(1))
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _first_at_least(values: Tensor, bound: Tensor, count: int) -> Tensor:
    """Return places of ``count`` values: all above ``bound``, then the first that equal it."""
    places = (values >= bound).nonzero().flatten()
    if places.shape[0] == count:
        return places
    found = values[places]
    above = places[found > bound]
    equal = places[found == bound][: count - above.shape[0]]
    return torch.cat((above, equal)).sort().values
