"""Every broken GGUF file ends in one error that names it: nothing hangs, nothing is allocated."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import pytest

from ninfer.contract import ModelError
from ninfer.runtime.loading.conversion import convert
from support.tiny_gguf import write_gguf
from support.tiny_models import write_checkpoint

HUGE = struct.pack("<Q", 1 << 60)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("gguf")
    return write_gguf(write_checkpoint(folder / "checkpoint"), folder / "tiny.gguf").read_bytes()


def refusal(tmp_path: Path, content: bytes) -> str:
    path, folder = tmp_path / "broken.gguf", tmp_path / "out"
    path.write_bytes(content)
    folder.mkdir(exist_ok=True)
    with pytest.raises(ModelError) as caught:
        convert(path, folder)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ").removeprefix("not a readable GGUF file: ")


def patched(whole: bytes, after: str, offset: int, content: bytes) -> bytes:
    """Return the bytes with others written ``offset`` behind the name of a field or tensor."""
    place = whole.index(struct.pack("<Q", len(after)) + after.encode()) + 8 + len(after) + offset
    return whole[:place] + content + whole[place + len(content) :]


def test_a_file_that_ends_anywhere_says_before_what(tmp_path: Path, whole: bytes) -> None:
    for size in (4, 7, 8, 12, 20, 24, 31, 100, 500, 3000, 7000, 7400, 8000, len(whole) - 40):
        assert "the file ends before" in refusal(tmp_path, whole[:size])


@pytest.mark.parametrize("version", [0, 1, 4, 3 << 24])
def test_other_versions_and_byte_orders_are_not_served(
    tmp_path: Path, whole: bytes, version: int
) -> None:
    content = whole[:4] + struct.pack("<I", version) + whole[8:]
    assert refusal(tmp_path, content).startswith(f"header: version {version} is not served")


@pytest.mark.parametrize("place", [8, 16])
def test_counts_beyond_the_file_are_not_followed(tmp_path: Path, whole: bytes, place: int) -> None:
    refusal(tmp_path, whole[:place] + HUGE + whole[place + 8 :])


@pytest.mark.parametrize(
    ("name", "offset", "content", "fact"),
    [
        ("general.name", 0, struct.pack("<I", 13), "type 13 is not known"),
        ("general.name", 4, HUGE, f"the file ends before {1 << 60} bytes"),
        ("general.name", 12, b"\xff", "a text is not UTF-8"),
        ("tokenizer.ggml.tokens", 8, HUGE, "the file ends before"),
        ("tokenizer.ggml.tokens", 4, struct.pack("<I", 9), "arrays of type 9 are not served"),
        ("tokenizer.ggml.token_type", 8, HUGE, f"the file ends before {4 << 60} bytes"),
        ("token_embd.weight", 0, struct.pack("<I", 9), "9 axes are not 1 to 4"),
        ("token_embd.weight", 0, struct.pack("<I", 0), "0 axes are not 1 to 4"),
        ("token_embd.weight", 4, HUGE, "the file ends before its"),
        ("token_embd.weight", 4, bytes(8), "is not of whole blocks"),
        ("token_embd.weight", 4, struct.pack("<Q", 63), "is not of whole blocks of 32"),
        ("token_embd.weight", 20, struct.pack("<I", 200), "type 200 is not known"),
        ("token_embd.weight", 24, struct.pack("<Q", 1), "offset 1 is not a multiple of 32"),
        ("token_embd.weight", 24, HUGE, "the file ends before its"),
    ],
)
def test_a_field_that_is_broken_is_named(
    tmp_path: Path, whole: bytes, name: str, offset: int, content: bytes, fact: str
) -> None:
    found = refusal(tmp_path, patched(whole, name, offset, content))
    assert found.startswith(f"{name}: ")
    assert fact in found


@pytest.mark.parametrize(
    ("name", "value", "fact"),
    [
        ("llama.attention.head_count", 0, "0 is not positive"),
        ("llama.embedding_length", 0, "0 is not positive"),
        ("llama.block_count", 0, "0 is not positive"),
        ("llama.attention.head_count_kv", 4, "32 rows, not 4 heads of 16"),
        ("llama.attention.head_count_kv", 3, "3 does not divide 4 heads"),
        ("llama.attention.key_length", 15, "15 is not even"),
        ("llama.attention.layer_norm_rms_epsilon", 0xFFC00000, "nan is not a finite number"),
        ("llama.rope.freq_base", 0xBF800000, "-1.0 is not positive"),
    ],
)
def test_metadata_that_no_model_has_is_refused_before_weights_are_written(
    tmp_path: Path, whole: bytes, name: str, value: int, fact: str
) -> None:
    found = refusal(tmp_path, patched(whole, name, 4, struct.pack("<I", value)))
    assert fact in found
    assert not list((tmp_path / "out").glob("*.safetensors"))


def test_names_that_occur_twice_are_refused(tmp_path: Path, whole: bytes) -> None:
    doubled = whole.replace(b"blk.1.attn_q.weight", b"blk.0.attn_q.weight")
    assert refusal(tmp_path, doubled).endswith("'blk.0.attn_q.weight' occurs twice")
    doubled = whole.replace(b"llama.rope.freq_base", b"llama.context_length")
    assert refusal(tmp_path, doubled).endswith("'llama.context_length' occurs twice")


def test_a_name_with_line_breaks_stays_in_one_line(tmp_path: Path, whole: bytes) -> None:
    found = refusal(tmp_path, whole.replace(b"blk.1.attn_q.weight", b"blk.1\nattn_q.weight"))
    assert found == "'blk.1\\nattn_q.weight': the tensor has no place in a served model"


def test_a_file_that_is_one_of_several_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "part.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint16("split.count", 3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert refusal(tmp_path, path.read_bytes()).startswith("split.count: one of 3 files")
