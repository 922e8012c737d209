"""Argument checks shared by the ops; every refusal comes before any device work."""

from __future__ import annotations

import torch
from torch import Tensor

from ninfer.contract import InvalidMask, RowMismatch, mask_words
from ninfer.ops.batch import RECORD_BYTES, SamplingBatch

_LOGIT_TYPES = (torch.bfloat16, torch.float16, torch.float32)


def check_logits(op: str, logits: Tensor, rank: int) -> None:
    """Check rank, dtype and that one token is next to another.

    Raises: RowMismatch — the logits are not [B, V] or [B, P, V] of a supported dtype, or strided
            along V.
    """
    if logits.dim() != rank:
        raise RowMismatch(f"{op} logits: rank {logits.dim()}, not {rank}")
    if logits.dtype not in _LOGIT_TYPES:
        raise RowMismatch(f"{op} logits: {logits.dtype} is not bfloat16, float16 or float32")
    if logits.shape[-1] == 0 or logits.stride(-1) != 1:
        raise RowMismatch(f"{op} logits: the token domain is empty or not contiguous")


def check_masks(op: str, masks: Tensor, logits: Tensor) -> None:
    """Check that the masks are int32[..., W] beside these logits.

    Raises: InvalidMask — dtype, shape, layout or device differ.
    """
    expected = (*logits.shape[:-1], mask_words(logits.shape[-1]))
    if masks.dtype != torch.int32:
        raise InvalidMask(f"{op} masks: {masks.dtype} is not int32")
    if tuple(masks.shape) != expected:
        raise InvalidMask(f"{op} masks: shape {tuple(masks.shape)}, not {expected}")
    if masks.stride(-1) != 1:
        raise InvalidMask(f"{op} masks: words are not contiguous")
    _check_device(op, "masks", masks, logits)


def check_counts(op: str, counts: Tensor, logits: Tensor) -> None:
    """Check that the count table is int32[rows, V] beside these logits.

    Raises: RowMismatch — dtype, shape, layout or device differ.
    """
    domain = logits.shape[-1]
    if counts.dtype != torch.int32 or counts.dim() != 2 or counts.shape[1] != domain:
        raise RowMismatch(
            f"{op} counts: {counts.dtype}{tuple(counts.shape)}, not int32[*, {domain}]"
        )
    if counts.stride(1) != 1:
        raise RowMismatch(f"{op} counts: tokens are not contiguous")
    _check_device(op, "counts", counts, logits)


def check_batch(op: str, batch: SamplingBatch, logits: Tensor) -> None:
    """Check that there is one record a row beside these logits.

    Raises: RowMismatch — the number of records, their layout or their device differs.
    """
    records = batch.records
    if records.dtype != torch.int64 or records.dim() != 2 or records.shape[1] != RECORD_BYTES // 8:
        found = f"{records.dtype}{tuple(records.shape)}"
        raise RowMismatch(f"{op} batch: {found}, not int64[*, {RECORD_BYTES // 8}]")
    if not records.is_contiguous():
        raise RowMismatch(f"{op} batch: records are not contiguous")
    if batch.rows != logits.shape[0]:
        raise RowMismatch(f"{op} batch: {batch.rows} records for {logits.shape[0]} rows")
    _check_device(op, "batch", batch.records, logits)


def _check_device(op: str, name: str, tensor: Tensor, logits: Tensor) -> None:
    if tensor.device != logits.device:
        raise RowMismatch(f"{op} {name}: on {tensor.device}, the logits are on {logits.device}")
