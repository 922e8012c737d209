"""A GGUF file becomes a checkpoint once: same numbers, same tokens, never half-written."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import pytest
import torch
from tokenizers import Tokenizer

from ninfer.contract import ModelError
from ninfer.runtime.loading import LoadProgress, LoadStage, load_model
from ninfer.runtime.loading.cache import converted
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from support.tiny_gguf import TEMPLATE, write_gguf
from support.tiny_models import byte_tokenizer, write_checkpoint


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("NINFER_CACHE_DIR", str(folder))
    return folder


def last_logits(path: Path) -> torch.Tensor:
    decoder = load_model(path, dtype=torch.float32).decoder
    pool = decoder.new_pool(1)
    batch = forward_batch([RowInput(list(range(40)), 0, SlotMap([0]))], pool)
    return decoder.logits(decoder.forward(batch, pool))


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_a_converted_file_computes_what_its_checkpoint_does(tmp_path: Path, family: str) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", family)
    path = write_gguf(checkpoint, tmp_path / "tiny.gguf")
    found, expected = last_logits(path), last_logits(checkpoint)
    # Q8_0 and bfloat16 both round; a wrong row order or a lost tensor would be far off.
    similarity = torch.nn.functional.cosine_similarity(found, expected, dim=-1)
    assert similarity.min() > 0.995


def test_dequantised_weights_are_the_library_s_own(tmp_path: Path, cache: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", "qwen2")
    path = write_gguf(checkpoint, tmp_path / "tiny.gguf")
    load_model(path)
    (folder,) = (cache / "models").iterdir()
    from safetensors.torch import load_file

    written = load_file(folder / "model.safetensors")
    tensors = {t.name: t for t in gguf.GGUFReader(path).tensors}
    assert len(written) == len(tensors)
    down = tensors["blk.1.ffn_down.weight"]
    expected = torch.from_numpy(gguf.dequantize(down.data, down.tensor_type)).to(torch.bfloat16)
    assert torch.equal(written["model.layers.1.mlp.down_proj.weight"], expected)
    assert written["model.norm.weight"].dtype == torch.float32


def test_facts_come_from_the_metadata(tmp_path: Path) -> None:
    path = write_gguf(write_checkpoint(tmp_path / "checkpoint"), tmp_path / "tiny.gguf")
    facts = load_model(path).facts
    assert facts.model_name == "tiny"
    assert facts.token_domain == 263
    assert facts.eos_ids == (257, 256)
    assert facts.control_ids == (256, 257, 258)
    assert facts.chat_template == TEMPLATE
    assert (facts.bos_token, facts.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert facts.reasoning is None


@pytest.mark.parametrize("pre", ["gpt-2", "smollm", "qwen2", "llama-bpe"])
def test_the_rebuilt_tokenizer_keeps_every_byte(tmp_path: Path, pre: str) -> None:
    path = write_gguf(write_checkpoint(tmp_path / "checkpoint"), tmp_path / "tiny.gguf", pre=pre)
    tokenizer = Tokenizer.from_str(load_model(path).facts.tokenizer_json)
    text = "the 2026 naïve 天气 <tool_call>\n\n x  </tool_call><|im_end|>"
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text
    assert byte_tokenizer().token_to_id("<|im_end|>") == ids[-1]
    assert tokenizer.encode(" the").ids == [262]


def test_the_second_start_reads_no_gguf(tmp_path: Path) -> None:
    path = write_gguf(write_checkpoint(tmp_path / "checkpoint"), tmp_path / "tiny.gguf")
    stages: list[LoadProgress] = []
    load_model(path, progress=stages.append)
    assert {report.stage for report in stages} == set(LoadStage)
    assert stages[-1].done == stages[-1].total
    code = (
        "import sys; from pathlib import Path; from ninfer.runtime.loading import load_model; "
        "load_model(Path(sys.argv[1])); "
        "print(sorted({'gguf', 'transformers', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_another_name_for_the_same_content_is_converted_once(tmp_path: Path, cache: Path) -> None:
    path = write_gguf(write_checkpoint(tmp_path / "checkpoint"), tmp_path / "tiny.gguf")
    copy = tmp_path / "elsewhere" / "renamed.gguf"
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    load_model(path)
    assert load_model(copy).facts.model_name == "renamed"
    assert len(list((cache / "models").iterdir())) == 1


def test_changed_content_is_converted_again(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_gguf(write_checkpoint(tmp_path / "one", seed=1), path)
    first = last_logits(path)
    write_gguf(write_checkpoint(tmp_path / "two", seed=2), path)
    assert not torch.equal(last_logits(path), first)
    assert len(list((cache / "models").iterdir())) == 2


@pytest.mark.parametrize("damaged", ["model.safetensors", "tokenizer.json", "complete.json"])
def test_a_truncated_conversion_is_made_again(tmp_path: Path, cache: Path, damaged: str) -> None:
    path = write_gguf(write_checkpoint(tmp_path / "checkpoint"), tmp_path / "tiny.gguf")
    expected = last_logits(path)
    (folder,) = (cache / "models").iterdir()
    whole = (folder / damaged).read_bytes()
    (folder / damaged).write_bytes(whole[: len(whole) // 2])
    assert torch.equal(last_logits(path), expected)
    assert (folder / damaged).read_bytes() == whole
    assert list((cache / "models").iterdir()) == [folder]


def test_starts_at_the_same_time_share_one_result(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "any.gguf"
    path.write_bytes(b"content")

    def convert(folder: Path) -> None:
        (folder / "weights").write_text("w" * 1000)

    with ThreadPoolExecutor(8) as threads:
        folders = set(threads.map(lambda _: converted(path, convert), range(32)))
    (folder,) = folders
    assert (folder / "weights").read_text() == "w" * 1000
    assert list((cache / "models").iterdir()) == [folder]


def test_a_failed_conversion_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ModelError, match=r"broken\.gguf: not a readable GGUF file"):
        load_model(path)
    assert list((cache / "models").iterdir()) == []


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"architecture": "mamba"}, "general.architecture: 'mamba' is not served"),
        ({"pre": "tekken"}, "tokenizer.ggml.pre: 'tekken' is not served"),
        ({"scaling": gguf.RopeScalingType.YARN}, "llama.rope.scaling.type: 'yarn' is not served"),
    ],
)
def test_what_is_not_served_is_named(tmp_path: Path, change: dict[str, str], fact: str) -> None:
    path = write_gguf(write_checkpoint(tmp_path / "checkpoint"), tmp_path / "tiny.gguf", **change)
    with pytest.raises(ModelError) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: {fact}")


def test_a_cache_folder_that_cannot_be_written_is_named(tmp_path: Path, cache: Path) -> None:
    path = write_gguf(write_checkpoint(tmp_path / "checkpoint"), tmp_path / "tiny.gguf")
    cache.write_text("a file")
    with pytest.raises(ModelError, match="NINFER_CACHE_DIR"):
        load_model(path)


def test_the_manifest_lists_every_file(tmp_path: Path, cache: Path) -> None:
    load_model(write_gguf(write_checkpoint(tmp_path / "checkpoint"), tmp_path / "tiny.gguf"))
    (folder,) = (cache / "models").iterdir()
    sizes = json.loads((folder / "complete.json").read_text())
    assert set(sizes) | {"complete.json"} == {file.name for file in folder.iterdir()}
