"""Rows and pages: what a program says it has room for is what it has room for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ninfer.contract import (
    EngineOptions,
    IntegrityError,
    SpeculativeBackend,
    UnsupportedOption,
)
from ninfer.runtime.loading import LoadedModel
from ninfer.runtime.models.kv_pool import PAGE_TOKENS, KvPool, SlotMap
from ninfer.runtime.program import TorchProgram
from ninfer.runtime.program.kv_room import KvRoom, pages_for
from ninfer.runtime.program.prefix_cache import CachedPrefix
from support.program_runs import decode, open_row, program, prompt, start, tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny_model(tmp_path_factory.mktemp("model"))


def test_the_shape_follows_model_and_options(model: LoadedModel) -> None:
    shape = program(model, max_concurrency=3, max_context=4096).shape
    assert (shape.rows, shape.draft_limit, shape.token_domain) == (3, 0, 260)
    assert (shape.context_tokens, shape.kv_tokens) == (512, 3 * 512)
    shared = program(model, max_concurrency=3, max_context=200, kv_tokens=200).shape
    assert (shared.context_tokens, shared.kv_tokens) == (200, 256)


def test_key_value_memory_that_holds_no_whole_context_is_refused(model: LoadedModel) -> None:
    with pytest.raises(ValueError, match=r"^kv_tokens: 200 .* no context of 256: 56 are missing"):
        program(model, max_concurrency=3, max_context=256, kv_tokens=200)
    assert program(model, max_context=4096, kv_tokens=512).shape.context_tokens == 512


def test_key_value_memory_beyond_the_device_is_refused_by_its_size(model: LoadedModel) -> None:
    with pytest.raises(ValueError, match=r"^kv_tokens: no memory for .* of \d+ tokens"):
        program(model, kv_tokens=1 << 48)


def test_the_memory_report_counts_what_was_reserved(model: LoadedModel) -> None:
    config, owner = model.decoder.config, program(model, max_concurrency=2, kv_tokens=640)
    memory = owner.memory
    token_bytes = 2 * config.attention_layers * config.kv_heads * config.head_dim
    assert memory.kv_bytes == 640 * token_bytes * model.decoder.dtype.itemsize
    assert memory.mask_host_bytes == 2 * 4 * (-(-260 // 32))
    assert (memory.mask_device_bytes, memory.state_bytes) == (0, 0)
    matrices = config.layers * 3 * config.hidden * config.ffn
    assert memory.weight_bytes > matrices * model.decoder.dtype.itemsize


def test_a_backend_without_a_drafter_is_refused(model: LoadedModel) -> None:
    options = EngineOptions(speculative=SpeculativeBackend.MTP, draft_tokens=3)
    with pytest.raises(UnsupportedOption, match="mtp"):
        TorchProgram(model, options)


def test_rows_and_pages_bound_what_can_open(model: LoadedModel) -> None:
    owner = program(model, max_concurrency=2, max_context=256, kv_tokens=320)
    assert owner.can_open(256, 1)
    first = open_row(owner, prompt(130, 0))
    assert owner.usage.kv_used_pages == 3
    assert owner.can_open(127, 1)
    assert not owner.can_open(128, 1)
    open_row(owner, prompt(64, 1))
    assert not owner.can_open(1, 1)
    with pytest.raises(IntegrityError):
        open_row(owner, prompt(10, 2))
    owner.release(first)
    assert owner.can_open(192, 1)


def test_an_empty_or_too_long_prompt_is_refused(model: LoadedModel) -> None:
    owner = program(model)
    for length in (0, 257):
        with pytest.raises(IntegrityError, match="prompt"):
            open_row(owner, prompt(length, 0))
    assert owner.usage.rows_used == 0


def test_rows_advance_together_only_as_far_as_pages_reach(model: LoadedModel) -> None:
    owner = program(model, max_concurrency=3, max_context=192, kv_tokens=256)
    rows = [open_row(owner, prompt(64, i)) for i in range(3)]
    assert owner.can_advance(rows) == 3
    for row in rows:
        start(owner, row)
    assert owner.can_advance(rows) == 1
    assert owner.can_advance(rows[1:]) == 1
    assert owner.can_advance(rows[:1], [64]) == 1
    assert owner.can_advance(rows[:1], [65]) == 0
    owner.release(rows[2])
    assert owner.can_advance(rows[:2]) == 2
    decode(owner, rows[:2])


Actions = st.lists(
    st.tuples(
        st.sampled_from(["take", "grow", "close", "keep", "reuse"]),
        st.integers(0, 5),
        st.integers(1, 200),
    ),
    max_size=40,
)


@given(Actions)
def test_no_page_ever_has_two_owners(actions: list[tuple[str, int, int]]) -> None:
    pool = KvPool(1, 12, 1, 1, device=torch.device("cpu"), dtype=torch.float32)
    room = KvRoom(pool, 12)
    live: list[list[int]] = []
    for name, which, tokens in actions:
        owned = live[which % len(live)] if live else None
        held = sum(map(len, live))
        if name == "take" and held + pages_for(tokens) <= 12:
            live.append(room.take(tokens))
        elif name == "reuse" and held + pages_for(tokens) <= 12:
            for match in room.prefixes.matches(range(tokens))[:1]:
                taken = room.take_with_prefix(tokens, match.prefix, match.shared_tokens)
                live.append(taken)
        elif owned is not None and name == "grow":
            wanted = len(owned) * PAGE_TOKENS + tokens
            if held - len(owned) + pages_for(wanted) <= 12:
                owned += room.grow(owned, wanted)
        elif owned is not None and name in ("close", "keep"):
            live.remove(owned)
            if name == "close":
                room.give_back(owned)
            else:
                length = min(tokens, len(owned) * PAGE_TOKENS)
                text = np.arange(length) if which % 2 else np.full(length, which)
                room.keep(CachedPrefix(text.astype(np.int64), owned, {}))
        cached = [page for prefix in room.prefixes for page in prefix.pages]
        pages = [page for owner in live for page in owner] + cached
        assert len(set(pages)) == len(pages) == room.used_pages
        assert room.available_pages == 12 - sum(map(len, live))


def test_rows_that_grow_side_by_side_each_stay_one_run() -> None:
    pool = KvPool(1, 16, 1, 1, device=torch.device("cpu"), dtype=torch.float32)
    room = KvRoom(pool, 16)
    rows = [room.take(10) for _ in range(4)]
    for tokens in (100, 150, 256):
        rows = [owned + room.grow(owned, tokens) for owned in rows]
    assert all(SlotMap(owned).run_begin is not None for owned in rows)
    assert room.available_pages == 0


def test_a_page_table_addresses_runs_and_scattered_pages_alike() -> None:
    scattered, run = SlotMap([3, 0, 7]), SlotMap([2, 3])
    assert scattered.run_begin is None
    assert run.run_begin == 2 * PAGE_TOKENS
    assert scattered.slots(62, 66).tolist() == [3 * 64 + 62, 3 * 64 + 63, 0, 1]
    assert run.slots(62, 66).tolist() == [2 * 64 + 62, 2 * 64 + 63, 3 * 64, 3 * 64 + 1]


def test_models_are_loaded_from_any_folder_name(tmp_path: Path) -> None:
    assert tiny_model(tmp_path / "Some Model").facts.model_name == "Some Model"
