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
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not JSON: {error}") from error
    model = parsed.get("model") if isinstance(parsed, dict) else None
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocabulary, dict) or not all(map(_is_id, vocabulary.values())):
        raise ModelError(f"{path}: model.vocab: is not an object of ids by spelling")
    added = parsed.get("added_tokens") or []
    if not isinstance(added, list) or not all(map(_is_added_token, added)):
        raise ModelError(f"{path}: added_tokens: is not a list of content, id and special")
    spelled = vocabulary | {t["content"]: t["id"] for t in added}
    if not spelled:
        raise ModelError(f"{path}: model.vocab: is empty")
    return _TokenIds(spelled, tuple(sorted(t["id"] for t in added if t["special"])))


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_added_token(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("content"), str)
        and _is_id(value.get("id"))
        and isinstance(value.get("special"), bool)
    )


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
        place = f"{checkpoint.folder / name}: eos_token_id"
        if not listed or not all(map(_is_id, listed)):
            raise ModelError(f"{place}: is not an id or ids")
        if max(listed) > (last := max(ids.by_spelling.values())):
            raise ModelError(f"{place}: {max(listed)} is not a token: the last one is {last}")
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
    if text is not None:
        return {"default": text}
    place, source = "chat_template.json", checkpoint.optional_json("chat_template.json")
    if source is None:
        place, source = "tokenizer_config.json", settings
    value = source.get("chat_template")
    if value is None:
        return {}
    if isinstance(value, str):
        return {"default": value}
    if not isinstance(value, list) or not all(map(_is_named_template, value)):
        fact = "chat_template: is not a text or a list of name and template"
        raise ModelError(f"{checkpoint.folder / place}: {fact}")
    return {t["name"]: t["template"] for t in value}


def _is_named_template(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(key), str) for key in ("name", "template")
    )
