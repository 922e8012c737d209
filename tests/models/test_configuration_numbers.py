"""Numbers of a configuration that no model can have are refused by field, before any weight."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ninfer.contract import DrafterError, ModelError, SpeculativeBackend
from ninfer.runtime.loading import load_drafter, load_model
from ninfer.runtime.models.registry import decoder_config
from support.hybrid_models import text_config
from support.tiny_drafters import block_config, mtp_config, write_drafter
from support.tiny_models import tiny_config, write_checkpoint

SIZES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "max_position_embeddings",
)
RECURRENT_SIZES = (
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
)
NO_SIZES = (0, -1, 2.5, True, 10**30, 10**400)
NO_SCALES = (0, -1.0, float("nan"), float("inf"), 10**400, True, "1")


def refusal(config: dict[str, Any]) -> str:
    with pytest.raises(ModelError) as caught:
        decoder_config(config, "config.json")
    return str(caught.value)


@pytest.mark.parametrize("value", NO_SIZES)
@pytest.mark.parametrize("name", SIZES)
def test_a_dense_model_has_positive_sizes(name: str, value: object) -> None:
    assert refusal(tiny_config("llama") | {name: value}).startswith(f"config.json: {name}: ")


@pytest.mark.parametrize("value", NO_SIZES)
@pytest.mark.parametrize("name", [*SIZES, *RECURRENT_SIZES])
def test_a_hybrid_has_positive_sizes(name: str, value: object) -> None:
    assert refusal(text_config() | {name: value}).startswith(f"config.json: {name}: ")


@pytest.mark.parametrize("value", NO_SCALES)
def test_scales_are_positive_and_finite(value: object) -> None:
    for name in ("rms_norm_eps", "rope_theta"):
        assert refusal(tiny_config("qwen2") | {name: value}).startswith(f"config.json: {name}: ")
    for kind, name in (
        ("linear", "factor"),
        ("llama3", "factor"),
        ("llama3", "low_freq_factor"),
        ("llama3", "high_freq_factor"),
        ("llama3", "original_max_position_embeddings"),
    ):
        scaling = tiny_config("llama3-rope")["rope_scaling"] | {"rope_type": kind, name: value}
        found = refusal(tiny_config("llama") | {"rope_scaling": scaling})
        assert found.startswith(f"config.json: rope_scaling: {name}: ")


@pytest.mark.parametrize(
    ("fields", "fact"),
    [
        ({"head_dim": 15}, "head_dim: 15 is not even"),
        ({"layer_types": ["chunked_attention"] * 3}, "layer_types: 'chunked_attention' is not"),
        ({"quantization_config": {"bits": 4}}, "quantization_config: is not served"),
        (
            {"rope_parameters": {"rope_type": "default"}},
            "rope_scaling: is another than rope_parameters",
        ),
        (
            {"rope_scaling": {"rope_type": "factors", "factors": [1.0] * 7 + [0.0]}},
            "rope_scaling: factors: 0.0 is not positive",
        ),
        (
            {"rope_scaling": {"rope_type": "factors", "factors": [True] * 8}},
            "rope_scaling: factors: is not a list of numbers",
        ),
    ],
)
def test_what_would_be_computed_otherwise_is_refused(fields: dict[str, Any], fact: str) -> None:
    linear = {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}
    assert refusal(tiny_config("llama") | linear | fields).startswith(f"config.json: {fact}")


@pytest.mark.parametrize("part", [0, -0.25, 1.5, float("nan"), float("inf"), 10**400])
def test_a_hybrid_turns_a_part_of_a_head(part: float) -> None:
    rope = text_config()["rope_parameters"] | {"partial_rotary_factor": part}
    found = refusal(text_config(rope_parameters=rope))
    assert found.startswith("config.json: rope_parameters: partial_rotary_factor: ")


def test_a_hybrid_does_not_pass_over_scaled_positions() -> None:
    config = text_config(rope_scaling={"rope_type": "linear", "factor": 2.0})
    assert refusal(config).startswith("config.json: rope_scaling: is another")
    both = config | {"rope_parameters": config["rope_scaling"]}
    assert decoder_config(both, "config.json").rope.factor == 2.0


@pytest.mark.parametrize("value", NO_SCALES)
@pytest.mark.parametrize("name", ["norm_eps", "rope_theta"])
def test_a_drafter_s_scales_are_positive_and_finite(
    tmp_path: Path, name: str, value: object
) -> None:
    model = load_model(write_checkpoint(tmp_path / "model"))
    for config in (mtp_config(), block_config("dflash")):
        folder = write_drafter(tmp_path / config["drafter"], config)
        (folder / "config.json").write_text(json.dumps(config | {name: value}))
        with pytest.raises(DrafterError, match=f"config.json: {name}: "):
            load_drafter(model, SpeculativeBackend(config["drafter"]), folder)
