"""Files of a checkpoint folder that cannot be read as meant are refused by name, in one line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from ninfer.contract import DrafterError, ModelError, SpeculativeBackend
from ninfer.runtime.loading import load_drafter, load_model
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from support.tiny_models import write_checkpoint

OPTIONAL = (
    "generation_config.json",
    "tokenizer_config.json",
    "chat_template.json",
    "chat_template.jinja",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model")


def refusal(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_model(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path)).lstrip("/: ")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", *OPTIONAL[:3]])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_without_end_to_its_depth_is_not_json(folder: Path, name: str, opening: str) -> None:
    (folder / name).write_text(opening * 100_000)
    assert refusal(folder).startswith(f"{name}: not JSON: ")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors", *OPTIONAL])
def test_what_stands_in_a_file_s_place_is_not_passed_over(folder: Path, name: str) -> None:
    path = folder / name
    path.unlink(missing_ok=True)
    for make in (path.mkdir, lambda: path.symlink_to("nowhere"), lambda: os.mkfifo(path)):
        make()
        assert refusal(folder) == f"{name}: is not a file, or a link that leads to none"
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    ("homes", "fact"),
    [
        ({"a": ["x"]}, "a: ['x'] is not the name of a file"),
        ({"a": None}, "a: None is not the name of a file"),
        ({"a": ""}, "a: '' is not the name of a file"),
        ({"a": "../other/model.safetensors"}, "a: '../other/model.safetensors' is not the name"),
        ({}, "is not an object with tensors"),
    ],
)
def test_an_index_names_files_of_its_folder(folder: Path, homes: Any, fact: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": homes}))
    assert refusal(folder).startswith(f"model.safetensors.index.json: weight_map: {fact}")


def test_a_tensor_of_two_shards_is_read_where_the_index_says(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    norm = "model.norm.weight"
    rest = {name: tensor for name, tensor in weights.items() if name != norm}
    save_file({norm: weights[norm]}, folder / "a.safetensors", {"format": "pt"})
    save_file(rest | {norm: torch.zeros(64)}, folder / "b.safetensors", {"format": "pt"})
    homes = dict.fromkeys(rest, "b.safetensors") | {norm: "a.safetensors"}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": homes}))
    decoder = load_model(folder, dtype=torch.float32).decoder
    pool = decoder.new_pool(1)
    batch = forward_batch([RowInput([1, 2, 3], 0, SlotMap([0]))], pool)
    assert decoder.forward(batch, pool).abs().min() > 0
    index.write_text(json.dumps({"weight_map": homes | {"absent": "a.safetensors"}}))
    assert refusal(folder) == "a.safetensors: absent: the tensor is missing"


@pytest.mark.parametrize("ids", [{"a": "b"}, {"a": None}, {"a": -1}, {"a": 1.5}, {"a": True}, []])
def test_a_vocabulary_has_ids(folder: Path, ids: Any) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] = ids
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert refusal(folder) == "tokenizer.json: model.vocab: is not an object of ids by spelling"


def test_scores_are_no_ids(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"] = {"type": "Unigram", "unk_id": 0, "vocab": [["a", -1.0], ["b", -2.0]]}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert refusal(folder).startswith("tokenizer.json: model.vocab: is not an object of ids")


@pytest.mark.parametrize("fields", [{"id": -1}, {"id": True}, {"content": 5}, {"special": 1}])
def test_an_added_token_is_whole(folder: Path, fields: dict[str, Any]) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["added_tokens"][1] |= fields
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    fact = "is not a list of content, id and special"
    assert refusal(folder) == f"tokenizer.json: added_tokens: {fact}"


@pytest.mark.parametrize("ids", [True, [True], -1, [257, -1], [], "x", [[257]]])
def test_what_ends_an_answer_is_an_id(folder: Path, ids: Any) -> None:
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ids}))
    assert refusal(folder) == "generation_config.json: eos_token_id: is not an id or ids"


def test_what_ends_an_answer_is_a_token(folder: Path) -> None:
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [257, 300]}))
    fact = "300 is not a token: the last one is 259"
    assert refusal(folder) == f"generation_config.json: eos_token_id: {fact}"


@pytest.mark.parametrize("name", ["tokenizer_config.json", "chat_template.json"])
@pytest.mark.parametrize("value", [5, True, {}, [1], [{"name": "default"}], [{"template": "x"}]])
def test_a_chat_template_is_text(folder: Path, name: str, value: Any) -> None:
    (folder / name).write_text(json.dumps({"chat_template": value}))
    fact = "is not a text or a list of name and template"
    assert refusal(folder) == f"{name}: chat_template: {fact}"


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_a_device_is_not_read(path: str) -> None:
    assert refusal(Path(path)) == "is neither a folder nor a file"


def test_a_path_that_cannot_be_followed_is_refused(tmp_path: Path, folder: Path) -> None:
    assert refusal(tmp_path / ("x" * 5000)) == "cannot be read: File name too long"
    (tmp_path / "loop").symlink_to("loop")
    assert refusal(tmp_path / "loop").startswith("cannot be read: Too many levels")
    assert refusal(folder / "config.json" / "below") == "does not exist"
    with pytest.raises(ModelError, match="embedded null"):
        load_model(tmp_path / "a\0b")
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "is neither a folder nor a file"
    model = load_model(folder)
    with pytest.raises(DrafterError, match="is not a folder"):
        load_drafter(model, SpeculativeBackend.MTP, tmp_path / ("x" * 5000))


def test_a_file_of_another_kind_is_not_taken_for_gguf(folder: Path) -> None:
    fact = "not a readable GGUF file: it begins with"
    assert refusal(folder / "model.safetensors").startswith(fact)
    assert refusal(folder / "config.json").startswith(fact)
