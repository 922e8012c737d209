"""Programs over a tiny hybrid that reuse prefixes, and what a fresh computation says instead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from ninfer.contract import EngineOptions, SequenceId, SpeculativeBackend
from ninfer.runtime.loading import LoadedModel, load_drafter, load_model
from ninfer.runtime.models.drafters import Drafter
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import PAGE_TOKENS, SlotMap
from ninfer.runtime.program import RoundForm, TorchProgram
from support.hybrid_models import write_hybrid
from support.program_runs import open_row, prefill
from support.tiny_drafters import block_config, write_drafter

NONE = SpeculativeBackend.NONE
MTP = SpeculativeBackend.MTP
DFLASH = SpeculativeBackend.DFLASH
DFLASH2 = SpeculativeBackend.DFLASH2


class Setup(NamedTuple):
    """Which drafter proposes, and how rounds run."""

    backend: SpeculativeBackend
    form: RoundForm

    def __str__(self) -> str:
        return f"{self.backend.value}-{self.form.value}"


PLAIN = Setup(NONE, RoundForm.RAGGED)
SETUPS = [
    Setup(backend, form)
    for backend in (NONE, MTP, DFLASH, DFLASH2)
    for form in (RoundForm.RAGGED, RoundForm.STAGED)
]
FEW_SETUPS = [PLAIN, Setup(MTP, RoundForm.STAGED), Setup(DFLASH, RoundForm.RAGGED)]


class TinyHybrid:
    """One random hybrid and its drafters, loaded once."""

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        torch.set_num_threads(1)
        written = write_hybrid(folder / "hybrid", seed=5)
        self.model: LoadedModel = load_model(written, device=device, dtype=torch.float32)
        self._drafters: dict[SpeculativeBackend, Drafter] = {MTP: load_drafter(self.model, MTP)}
        for backend in (DFLASH, DFLASH2):
            config = block_config(backend.value)
            self._drafters[backend] = load_drafter(
                self.model, backend, write_drafter(folder / backend.value, config)
            )

    @property
    def state_bytes(self) -> int:
        """Return the bytes of one checkpoint."""
        return self.model.decoder.new_pool(1).row_bytes

    def program(self, setup: Setup = PLAIN, **options: int) -> TorchProgram:
        """Return a program with room for four rows of 512 tokens unless told otherwise."""
        chosen = {"max_concurrency": 4, "max_context": 512, "prefill_chunk": 256} | options
        engine = EngineOptions(
            speculative=setup.backend,
            draft_tokens=0 if setup.backend is NONE else 4,
            **chosen,  # type: ignore[arg-type]
        )
        return TorchProgram(self.model, engine, self._drafters.get(setup.backend), setup.form)

    def logits(self, text: Sequence[int]) -> torch.Tensor:
        """Return float32[tokens, vocab_rows] of a text that is computed at once and alone."""
        decoder = self.model.decoder
        pages = -(-len(text) // PAGE_TOKENS)
        pool = decoder.new_pool(pages)
        row = RowInput(list(text), 0, SlotMap(range(pages)))
        return decoder.logits(decoder.forward(forward_batch([row], pool, is_whole=True), pool))

    def require_greedy(self, text: Sequence[int], answer: Sequence[int]) -> None:
        """Check that every token of an answer is the best one, up to 1e-4, after what precedes."""
        whole = [*text, *answer]
        logits = self.logits(whole)[len(text) - 1 : -1, : self.model.facts.token_domain]
        chosen = logits.gather(1, torch.tensor(answer)[:, None])[:, 0]
        assert (logits.amax(1) - chosen).max() < 1e-4


def require_fresh_state(owner: TorchProgram, fresh: TorchProgram, sequence: SequenceId) -> None:
    """Check what a sequence holds against the same tokens computed at once in another program.

    Keys, values and recurrent states of all computed tokens, and all entries of a drafter.
    """
    resident = owner._residents.get(sequence)
    text = tuple(resident.ledger[: resident.frontier])
    if not text:
        return
    twin = fresh._residents.get(open_row(fresh, text))
    fresh.abort(prefill(fresh, twin.sequence))
    entries = min(resident.draft.absorbed, twin.draft.absorbed)
    found, expected = (
        program._residents._pool.save(row.slots.slots(0, len(text)), row.row)
        for program, row in ((owner, resident), (fresh, twin))
    )
    for place, (part, other) in enumerate(zip(found.parts, expected.parts, strict=True)):
        read = len(text) if place == 0 else entries
        _require_close(part.keys[:, :read], other.keys[:, :read])
        _require_close(part.values[:, :read], other.values[:, :read])
        if part.states is not None and other.states is not None:
            _require_close(part.states.tails, other.states.tails)
            _require_close(part.states.states, other.states.states)
    fresh.release(twin.sequence)


def _require_close(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-4)


def prompt_logits(owner: TorchProgram, sequence: SequenceId, model: LoadedModel) -> torch.Tensor:
    """Return what a sequence samples its first token from."""
    hidden = owner._residents.get(sequence).final_hidden
    assert hidden is not None
    return model.decoder.logits(hidden.unsqueeze(0))[0]
