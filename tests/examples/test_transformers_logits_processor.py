"""The example for other engines works with ``transformers`` and a tiny random model, offline."""

import importlib.util
from itertools import product
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel
from tokenizers.models import BPE
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from ninfer.contract import ConstraintDeadEnd, OutputConstraint
from support.answering import tokenizer_json

EXAMPLE = Path(__file__).parents[2] / "examples" / "transformers_logits_processor.py"
DOMAIN = 264
EOS = 256


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tokenizer():
    backend = Tokenizer.from_str(tokenizer_json())
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|im_end|>"
    )


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=DOMAIN,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        eos_token_id=EOS,
        pad_token_id=EOS,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


@pytest.mark.parametrize(
    ("constraint", "answers"),
    [
        (OutputConstraint.choice(["yes", "no", "上海"]), {"yes", "no", "上海"}),
        (
            OutputConstraint.regex("[ab]{4}"),
            {"".join(word) for word in product("ab", repeat=4)},
        ),
    ],
)
def test_a_batch_stays_in_the_language(example, tokenizer, model, constraint, answers):
    held = example.ConstraintProcessor(tokenizer, constraint, DOMAIN, rows=3)
    inputs = tokenizer(["one", "two", "six"], return_tensors="pt")
    output = model.generate(
        input_ids=inputs.input_ids,
        attention_mask=inputs.attention_mask,
        logits_processor=[held],
        max_new_tokens=32,
        do_sample=True,
    )
    said = tokenizer.batch_decode(output[:, 3:], skip_special_tokens=True)
    assert len(said) == 3
    assert set(said) <= answers


def test_without_the_processor_the_model_babbles(tokenizer, model):
    inputs = tokenizer(["one"], return_tensors="pt")
    output = model.generate(**inputs, max_new_tokens=8, do_sample=False)
    assert tokenizer.decode(output[0, 3:]) not in ("yes", "no", "上海")


def test_a_word_that_the_vocabulary_cannot_spell_ends_in_an_error(example):
    backend = Tokenizer(BPE(vocab={"a": 0, "</s>": 1}, merges=[]))
    backend.decoder = ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>")
    held = example.ConstraintProcessor(tokenizer, OutputConstraint.choice(["az"]), 2)
    ids, scores = torch.zeros(1, 3, dtype=torch.long), torch.zeros(1, 2)
    assert held(ids, scores).tolist() == [[0.0, float("-inf")]]
    with pytest.raises(ConstraintDeadEnd, match="row 0"):
        held(torch.zeros(1, 4, dtype=torch.long), scores)
