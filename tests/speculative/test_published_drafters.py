"""Published DFlash and DFlash2 folders are read as they stand, or refused by file and field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ninfer.contract import DrafterError, SpeculativeBackend
from ninfer.runtime.loading import LoadedModel, load_drafter
from ninfer.runtime.models.drafters import ContextRow, Drafter, ProposalRow
from ninfer.runtime.models.drafters.published_config import default_target_layers
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from support.program_runs import GREEDY, SAMPLED, prompt, tiny_model
from support.published_drafters import published_config, published_weights, write_published
from support.tiny_drafters import block_config, random_weights, write_drafter
from support.tiny_models import TOKEN_DOMAIN, VOCAB_ROWS

BLOCK = 7
OWN: dict[str, dict[str, Any]] = {
    "dflash": block_config("dflash"),
    "dflash, mixed": block_config("dflash", layers=3, windows=[9, 9, 0], target_layers=[0, 1, 2]),
    "dflash2": block_config("dflash2", windows=[5, 5]),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return tiny_model(tmp_path_factory.mktemp("target"))


def load(model: LoadedModel, kind: str, folder: Path) -> Drafter:
    return load_drafter(model, SpeculativeBackend(kind), folder)


def streams(model: LoadedModel, text: list[int], taps: tuple[int, ...]) -> Tensor:
    pool = model.decoder.new_pool(2)
    batch = forward_batch([RowInput(text, 0, SlotMap(range(2)))], pool)
    return model.decoder.states(batch, pool, taps).features


def proposals(model: LoadedModel, drafter: Drafter, rounds: int = 4) -> list[list[int]]:
    """Return the drafts after texts of several lengths, greedy and sampled."""
    found = []
    for index in range(rounds):
        text = list(prompt(25 + 12 * index, 80 + index))
        pool = drafter.new_pool(2)
        context = ContextRow(
            0, streams(model, text[:-1], drafter.taps), text[1:], SlotMap(range(2))
        )
        sampling = SAMPLED if index % 2 else GREEDY
        row = ProposalRow(context, text[-1], BLOCK, BLOCK, sampling)
        found.append(drafter.propose([row], pool).tokens[0].tolist())
    return found


def written(
    folder: Path, name: str, change: Callable[[dict[str, Any]], object] | None = None
) -> Path:
    """Write a random published folder, its configuration changed in one place."""
    own = OWN[name]
    config = published_config(own)
    if change is not None:
        change(config)
    weights = random_weights(own, seed=3, vocab_rows=VOCAB_ROWS)
    return write_published(folder, config, published_weights(weights))


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_published_folder_drafts_as_the_same_weights_in_our_format(
    model: LoadedModel, tmp_path: Path, name: str
) -> None:
    own = OWN[name]
    kind = own["drafter"]
    weights = random_weights(own, seed=3, vocab_rows=VOCAB_ROWS)
    expected = load(model, kind, write_drafter(tmp_path / "own", own, weights))
    found = load(model, kind, written(tmp_path / "published", name))
    assert found.taps == expected.taps
    assert found.weight_bytes == expected.weight_bytes
    assert proposals(model, found) == proposals(model, expected)


def test_shards_and_an_own_embedding_change_nothing(model: LoadedModel, tmp_path: Path) -> None:
    own = OWN["dflash2"]
    weights = published_weights(random_weights(own, seed=3, vocab_rows=VOCAB_ROWS))
    weights["embed_tokens.weight"] = torch.zeros(VOCAB_ROWS, own["hidden"])
    folder = write_published(tmp_path / "shards", published_config(own), weights, shards=3)
    assert not (folder / "model.safetensors").exists()
    whole = load(model, "dflash2", written(tmp_path / "whole", "dflash2"))
    parted = load(model, "dflash2", folder)
    assert parted.weight_bytes == whole.weight_bytes
    assert proposals(model, parted) == proposals(model, whole)


def flatten(config: dict[str, Any]) -> None:
    """Spell a configuration as older files do."""
    config |= config.pop("dflash_config")
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    config["rope_scaling"] = None
    del config["is_causal"]


def forget_layer_types(config: dict[str, Any]) -> None:
    """Leave it to ``max_window_layers`` which layers have windows."""
    del config["layer_types"]
    config["max_window_layers"] = 0


@pytest.mark.parametrize("change", [flatten, forget_layer_types])
def test_other_spellings_mean_the_same(
    model: LoadedModel, tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    plain = load(model, "dflash2", written(tmp_path / "plain", "dflash2"))
    other = load(model, "dflash2", written(tmp_path / "other", "dflash2", change))
    assert proposals(model, other) == proposals(model, plain)


def test_windows_of_a_published_folder_are_kept(model: LoadedModel, tmp_path: Path) -> None:
    def widen(config: dict[str, Any]) -> None:
        config["sliding_window"] = 400

    narrow = load(model, "dflash", written(tmp_path / "narrow", "dflash, mixed"))
    wide = load(model, "dflash", written(tmp_path / "wide", "dflash, mixed", widen))
    assert proposals(model, narrow) != proposals(model, wide)


def test_a_mask_above_every_token_is_taken_from_the_embedding(
    model: LoadedModel, tmp_path: Path
) -> None:
    def lift(config: dict[str, Any]) -> None:
        config["dflash_config"]["mask_token_id"] = VOCAB_ROWS - 1

    assert VOCAB_ROWS - 1 > TOKEN_DOMAIN == model.facts.token_domain
    drafter = load(model, "dflash", written(tmp_path / "high", "dflash", lift))
    plain = load(model, "dflash", written(tmp_path / "plain", "dflash"))
    found = proposals(model, drafter)
    assert found != proposals(model, plain)
    assert max(map(max, found)) < TOKEN_DOMAIN


def test_layers_that_no_field_names_are_the_usual_ones(tmp_path: Path) -> None:
    assert default_target_layers(1, 64) == (32,)
    assert default_target_layers(5, 64) == (1, 16, 31, 46, 61)
    assert default_target_layers(8, 40) == (1, 6, 11, 16, 22, 27, 32, 37)
    own = block_config("dflash", layers=1, target_layers=[1])
    model = tiny_model(tmp_path / "target")
    config = published_config(own)
    del config["dflash_config"]["target_layer_ids"]
    weights = random_weights(own, seed=3, vocab_rows=VOCAB_ROWS)
    folder = write_published(tmp_path / "drafter", config, published_weights(weights))
    assert load(model, "dflash", folder).taps == (1,)


INNER = "dflash_config"
REFUSED: list[tuple[str, object, str]] = [
    ("architectures", ["DFlash3DraftModel"], "architectures: ['DFlash3DraftModel'] is not served"),
    ("architectures", None, "architectures: is not a list"),
    ("architectures", ["DFlashDraftModel"], "dflash_config.conv_kernel_size: is not a field"),
    ("model_type", "llama", "model_type: 'llama' is not served"),
    ("hidden_act", "gelu", "hidden_act: 'gelu' is not served"),
    ("attention_bias", True, "attention_bias: True is not served"),
    ("mlp_bias", True, "mlp_bias: True is not served"),
    ("is_causal", True, "is_causal: True is not served"),
    ("hidden_size", 128, "hidden_size: 128, the target has 64"),
    ("vocab_size", 321, "vocab_size: 321, the target has 320"),
    ("num_target_layers", 64, "num_target_layers: 64, the target has 3"),
    ("target_hidden_size", 32, "target_hidden_size: 32, the target has 64"),
    ("draft_vocab_size", 100, "draft_vocab_size: 100, the target has 320"),
    ("num_attention_heads", 3, "num_key_value_heads: 2 does not divide 3 heads"),
    ("num_key_value_heads", None, "num_key_value_heads: is missing"),
    ("num_hidden_layers", 0, "num_hidden_layers: 0 is not positive"),
    ("head_dim", 15, "head_dim: 15 is not even"),
    ("head_dim", "16", "head_dim: is str, not int"),
    ("rms_norm_eps", None, "rms_norm_eps: is missing"),
    ("intermediate_size", 49, "layers.0.mlp.gate_proj.weight: shape"),
    ("rope_parameters", None, "rope_parameters.rope_theta: is missing"),
    ("rope_parameters", 7, "rope_parameters: is not an object"),
    ("rope_parameters.rope_type", "yarn", "rope_parameters.rope_type: 'yarn' is not served"),
    ("rope_parameters.factor", 4.0, "rope_parameters.factor: is not a field that is served"),
    ("rope_parameters.full_attention", {}, "rope_parameters.full_attention: is not a field"),
    ("rope_parameters.partial_rotary_factor", 0.5, "partial_rotary_factor: 0.5 is not served"),
    ("rope_theta", 5.0, "rope_theta: 5.0, but rope_parameters.rope_theta is 10000.0"),
    ("rope_scaling", {"type": "linear", "factor": 2}, "rope_scaling.type: 'linear' is not served"),
    ("rope_scaling", {"factor": 2.0}, "rope_scaling.factor: is not a field that is served"),
    ("layer_types", ["full_attention"], "layer_types: 1 kinds for 2 layers"),
    ("layer_types", ["full_attention", "local"], "layer_types: 'local' is not served"),
    ("layer_types", "all", "layer_types: is not a list of strings"),
    ("sliding_window", None, "sliding_window: is missing"),
    ("sliding_window", 0, "sliding_window: 0 is not positive"),
    ("use_sliding_window", False, "use_sliding_window: False, but layer_types has"),
    ("quantization_config", {"bits": 4}, "quantization_config: is not served"),
    ("final_logit_softcapping", 30.0, "final_logit_softcapping: 30.0 is not served"),
    (INNER, None, "dflash_config.conv_kernel_size: is missing"),
    (INNER, [], "dflash_config: is not an object"),
    (f"{INNER}.attention_mode", "mla", "dflash_config.attention_mode: 'mla' is not served"),
    (f"{INNER}.output_multiplier", 2.0, "dflash_config.output_multiplier: 2.0 is not served"),
    (f"{INNER}.input_embedding_scale", 8, "dflash_config.input_embedding_scale: 8 is not served"),
    (f"{INNER}.final_logit_softcapping", 20.0, "dflash_config.final_logit_softcapping: 20.0 is"),
    (f"{INNER}.fc_layernorm", True, "dflash_config.fc_layernorm: True is not served"),
    (f"{INNER}.projector_type", "dspark", "dflash_config.projector_type: 'dspark' is not served"),
    (f"{INNER}.markov_head", 4, "dflash_config.markov_head: is not a field that is served"),
    (f"{INNER}.conv_kernel_size", 3, "dflash_config.conv_kernel_size: 3 is not served"),
    (f"{INNER}.conv_group_size", 7, "dflash_config.conv_group_size: 7 does not divide 64"),
    (f"{INNER}.selector_top_k", 8, "dflash_config.selector_top_k: 8 is not served"),
    (f"{INNER}.selector_top_k", None, "dflash_config.selector_top_k: is missing"),
    (f"{INNER}.selector_rank", 9, "candidate_selector.predecessor_codebook: shape"),
    (f"{INNER}.mask_token_id", 320, "dflash_config.mask_token_id: 320 is not a row"),
    (f"{INNER}.mask_token_id", None, "dflash_config.mask_token_id: is missing"),
    (f"{INNER}.target_layer_ids", [0, 1, 3], "dflash_config.target_layer_ids: [0, 1, 3] are not"),
    (f"{INNER}.target_layer_ids", [0, 1, 1], "dflash_config.target_layer_ids: [0, 1, 1] are not"),
    (f"{INNER}.target_layer_ids", [2, 1, 0], "dflash_config.target_layer_ids: [2, 1, 0] are not"),
    (f"{INNER}.target_layer_ids", [0, 1.5], "dflash_config.target_layer_ids: [0.0, 1.5] are not"),
    (f"{INNER}.target_layer_ids", [], "dflash_config.target_layer_ids: [] are not"),
    (f"{INNER}.target_layer_ids", [0, 1], "fc.weight: shape"),
    (f"{INNER}.target_layer_ids", None, "dflash_config.target_layer_ids: is missing, and 3"),
]


@pytest.mark.parametrize(("field", "value", "place"), REFUSED)
def test_what_is_not_served_is_refused_by_file_and_field(
    model: LoadedModel, tmp_path: Path, field: str, value: object, place: str
) -> None:
    def change(config: dict[str, Any]) -> None:
        *outer, name = field.split(".")
        (config[outer[0]] if outer else config)[name] = value

    folder = written(tmp_path, "dflash2", change)
    with pytest.raises(DrafterError) as caught:
        load(model, "dflash2", folder)
    file = folder if ".weight" in place or "codebook" in place else folder / "config.json"
    assert str(caught.value).startswith(f"{file}: ")
    assert place in str(caught.value)


def test_the_kind_must_be_the_one_that_is_asked_for(model: LoadedModel, tmp_path: Path) -> None:
    folder = written(tmp_path, "dflash")
    with pytest.raises(DrafterError, match=r"config.json: architectures: of a dflash drafter, not"):
        load(model, "dflash2", folder)


@pytest.mark.parametrize(
    ("name", "weight", "fact"),
    [
        ("layers.0.self_attn.q_proj.bias", torch.zeros(64), "is not a tensor of this drafter's"),
        ("layers.2.mlp.up_proj.weight", torch.zeros(48, 64), "is not a tensor of this drafter's"),
        ("lm_head.weight", torch.zeros(320, 64), "is not a tensor of this drafter's"),
        ("norm.weight", torch.zeros(64, dtype=torch.int8), "torch.int8 is not served"),
        ("layers.1.mlp_conv.base_kernel", None, "the tensor is missing"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_by_name(
    model: LoadedModel, tmp_path: Path, name: str, weight: Tensor | None, fact: str
) -> None:
    own = OWN["dflash2"]
    weights = published_weights(random_weights(own, seed=3, vocab_rows=VOCAB_ROWS))
    weights.pop(name, None)
    if weight is not None:
        weights[name] = weight
    folder = write_published(tmp_path, published_config(own), weights)
    with pytest.raises(DrafterError) as caught:
        load(model, "dflash2", folder)
    assert str(caught.value).startswith(f"{folder}: {name}: {fact}")


def test_transformers_drafts_the_same(model: LoadedModel, tmp_path: Path) -> None:
    """Its only DFlash drafter has other names, and counts a window from the key next to it."""
    judge = pytest.importorskip("transformers.models.muse_glimmer_assistant")
    caches = pytest.importorskip("transformers.cache_utils")
    folder = written(tmp_path, "dflash, mixed")
    config = json.loads((folder / "config.json").read_text())
    inner = config["dflash_config"]
    shape = judge.MuseGlimmerAssistantConfig(
        **{key: config[key] for key in (
            "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
            "num_key_value_heads", "head_dim", "rms_norm_eps", "rope_parameters", "layer_types",
            "max_position_embeddings", "hidden_act",
        )},
        sliding_window=config["sliding_window"] - 1,
        block_size=BLOCK + 1,
        mask_token_id=inner["mask_token_id"],
        target_layer_ids=inner["target_layer_ids"],
    )  # fmt: skip
    expected = judge.MuseGlimmerAssistantModel(shape).eval()
    weights = published_weights(random_weights(OWN["dflash, mixed"], 3, VOCAB_ROWS))
    weights["encoder.fc.weight"] = weights.pop("fc.weight")
    weights["encoder.output_norm_enc.weight"] = weights.pop("hidden_norm.weight")
    expected.load_state_dict(weights)

    drafter = load(model, "dflash", folder)
    text = list(prompt(60, 7))
    features = streams(model, text, drafter.taps)
    pool, slots, cache = drafter.new_pool(2), SlotMap(range(2)), caches.DFlashCache()
    begin = 0
    # Columns come as a prompt and rounds that keep some of their columns bring them.
    for frontier in (30, 31, 37, 45, 46, 59):
        new = features[begin:frontier]
        context = ContextRow(begin, new, text[begin + 1 : frontier + 1], slots)
        row = ProposalRow(context, text[frontier], BLOCK, BLOCK, GREEDY)
        found = drafter.propose([row], pool).tokens[0].tolist()
        tokens = torch.tensor([[text[frontier], *[inner["mask_token_id"]] * BLOCK]])
        if begin:
            cache.crop(-(BLOCK + 1))
        cache.set_previous_accepted_tokens(len(new))
        positions = torch.arange(begin, frontier + BLOCK + 1)[None]
        with torch.no_grad():
            hidden = expected(
                noise_embeds=model.decoder.embed(tokens),
                context_hidden_states=new[None],
                position_ids=positions,
                cache=cache,
            ).last_hidden_state[0, 1:]
        logits = model.decoder.logits(hidden)[:, : model.facts.token_domain]
        assert found == logits.argmax(-1).tolist()
        begin = frontier
