"""The cache of conversions helps where it can, and is never blamed or trusted wrongly."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from safetensors import SafetensorError

from ninfer.contract import ModelError
from ninfer.runtime.loading import load_model
from ninfer.runtime.loading.cache import converted
from support.tiny_gguf import write_gguf
from support.tiny_models import write_checkpoint


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("NINFER_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "any.gguf"
    path.write_bytes(b"content")
    return path


def convert(folder: Path) -> None:
    (folder / "weights").write_text("w")


def never(folder: Path) -> None:
    raise AssertionError(folder)


@pytest.mark.parametrize("digest", [b"\xff" * 64, b"../" * 21 + b"x", b"", b"z" * 64])
def test_a_remembered_digest_is_one_or_is_made_again(
    source: Path, cache: Path, digest: bytes
) -> None:
    folder = converted(source, convert)
    (memory,) = (cache / "identities").iterdir()
    written = memory.read_bytes()
    memory.write_bytes(digest)
    assert converted(source, never) == folder
    assert memory.read_bytes() == written


def test_a_finished_conversion_serves_where_nothing_can_be_written(
    source: Path, cache: Path
) -> None:
    folder = converted(source, convert)
    for file in (cache / "identities").iterdir():
        file.unlink()
    (cache / "identities").rmdir()
    (cache / "identities").write_text("no folder")
    assert converted(source, never) == folder


@pytest.mark.parametrize(
    "manifest", ["{}", "[]", "5", '{"weights": "1"}', "[" * 100_000, '{"a": 1}']
)
def test_a_manifest_that_does_not_list_the_files_is_not_trusted(
    source: Path, cache: Path, manifest: str
) -> None:
    folder = converted(source, convert)
    whole = (folder / "complete.json").read_text()
    (folder / "complete.json").write_text(manifest)
    assert converted(source, convert) == folder
    assert (folder / "complete.json").read_text() == whole


def test_a_file_that_cannot_be_read_is_named_and_not_the_cache(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        converted(tmp_path, never)
    assert str(caught.value) == f"{tmp_path}: cannot be read: Is a directory"


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), SafetensorError("No space left on device")]
)
def test_a_full_cache_is_named_and_left_empty(source: Path, cache: Path, error: Exception) -> None:
    def fill(folder: Path) -> None:
        convert(folder)
        raise error

    with pytest.raises(ModelError) as caught:
        converted(source, fill)
    place = f"{cache}: the cache folder cannot be used (No space left on device)"
    assert str(caught.value).startswith(place)
    assert list((cache / "models").iterdir()) == []


def test_an_interrupted_conversion_leaves_nothing(source: Path, cache: Path) -> None:
    def interrupt(folder: Path) -> None:
        convert(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        converted(source, interrupt)
    assert list((cache / "models").iterdir()) == []


def test_what_a_killed_conversion_left_is_removed_and_a_running_one_is_not(
    source: Path, cache: Path
) -> None:
    for name, age in (("partial-dead", 2 * 86400), ("partial-alive", 60)):
        folder = cache / "models" / name / "conversion"
        folder.mkdir(parents=True)
        (folder / "shard").write_text("w")
        when = time.time() - age
        for place in (folder / "shard", folder, folder.parent):
            os.utime(place, (when, when))
    finished = converted(source, convert)
    alive = cache / "models" / "partial-alive"
    assert set((cache / "models").iterdir()) == {finished, alive}


def test_a_conversion_that_cannot_be_served_names_the_file(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint")
    path = write_gguf(checkpoint, tmp_path / "tiny.gguf")
    whole = path.read_bytes()
    place = whole.index(b"llama.attention.head_count_kv") + len("llama.attention.head_count_kv")
    path.write_bytes(whole[: place + 4] + (3).to_bytes(4, "little") + whole[place + 8 :])
    with pytest.raises(ModelError) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: ")
