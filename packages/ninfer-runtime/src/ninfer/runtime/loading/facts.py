"""What the frontend must know of a checkpoint, read from its JSON files."""

from __future__ import annotations

import json
from typing import NamedTuple

from ninfer.contract import ModelError
from ninfer.qwen_frontend.facts import ModelFacts, find_reasoning_markers
from ninfer.runtime.loading.checkpoint import Checkpoint, Json


def checkpoint_facts(checkpoint: Checkpoint, model_name: str) -> ModelFacts:
    """Return the facts of a checkpoint folder.

    Raises: ModelError — tokenizer.json is missing or holds no vocabulary by spelling, or no file
            says which ids end an answer.
    """
    tokenizer_json = checkpoint.optional_text("tokenizer.json")
    if tokenizer_json is None:
        raise ModelError(f"{checkpoint.folder / 'tokenizer.json'}: the file is missing")
    ids = _token_ids(checkpoint, tokenizer_json)
    settings = checkpoint.optional_json("tokenizer_config.json") or {}
    templates = _chat_templates(checkpoint, settings)
    default = templates.get("default")
    return ModelFacts(
        tokenizer_json=tokenizer_json,
        token_domain=max(ids.by_spelling.values()) + 1,
        eos_ids=_eos_ids(checkpoint, settings, ids),
        control_ids=ids.control,
        chat_template=default,
        tool_template=templates.get("tool_use"),
        bos_token=_spelling(settings, "bos_token"),
        eos_token=_spelling(settings, "eos_token"),
        model_name=model_name,
        reasoning=find_reasoning_markers(default),
    )


class _TokenIds(NamedTuple):
    by_spelling: dict[str, int]
    control: tuple[int, ...]


def _token_ids(checkpoint: Checkpoint, tokenizer_json: str) -> _TokenIds:
    path = checkpoint.folder / "tokenizer.json"
    try:
        parsed = json.loads(tokenizer_json)
        vocabulary = dict(parsed["model"]["vocab"])
        added = [
            (str(t["content"]), int(t["id"]), bool(t["special"])) for t in parsed["added_tokens"]
        ]
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"{path}: no vocabulary by spelling in model.vocab: {error!r}") from error
    vocabulary.update({text: token for text, token, _ in added})
    if not vocabulary:
        raise ModelError(f"{path}: model.vocab: is empty")
    return _TokenIds(vocabulary, tuple(sorted(token for _, token, special in added if special)))


def _eos_ids(checkpoint: Checkpoint, settings: Json, ids: _TokenIds) -> tuple[int, ...]:
    """Read the generation settings first: the tokenizer's and the model's word is narrower."""
    generation = checkpoint.optional_json("generation_config.json") or {}
    text = checkpoint.config.get("text_config")
    for name, values in (
        ("generation_config.json", generation),
        ("config.json", checkpoint.config),
        ("config.json: text_config", text if isinstance(text, dict) else {}),
    ):
        found = values.get("eos_token_id")
        if found is None:
            continue
        listed = found if isinstance(found, list) else [found]
        if not listed or not all(isinstance(token, int) for token in listed):
            raise ModelError(f"{checkpoint.folder / name}: eos_token_id: is not an id or ids")
        return tuple(dict.fromkeys(listed))
    spelled = ids.by_spelling.get(_spelling(settings, "eos_token"))
    if spelled is None:
        raise ModelError(f"{checkpoint.folder}: eos_token_id: no file says what ends an answer")
    return (spelled,)


def _spelling(settings: Json, name: str) -> str:
    value = settings.get(name)
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _chat_templates(checkpoint: Checkpoint, settings: Json) -> dict[str, str]:
    text = checkpoint.optional_text("chat_template.jinja")
    value: object = text
    if value is None:
        value = (checkpoint.optional_json("chat_template.json") or settings).get("chat_template")
    if isinstance(value, str):
        return {"default": value}
    if isinstance(value, list):
        return {str(t["name"]): str(t["template"]) for t in value if isinstance(t, dict)}
    return {}
