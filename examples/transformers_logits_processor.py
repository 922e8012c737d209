"""Hold another engine's answer to a constraint: a ``transformers`` logits processor.

    python examples/transformers_logits_processor.py MODEL_FOLDER "Is Paris in France?" yes no

``ninfer.text`` needs a tokenizer and nothing else; the five lines that matter are in
``ConstraintProcessor``: vocabulary, compile, matcher, fill a mask, advance.
"""

from __future__ import annotations

import sys

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LogitsProcessor,
    PreTrainedTokenizerFast,
)

from ninfer.contract import ConstraintDeadEnd, OutputConstraint, mask_words
from ninfer.text import ConstraintCompiler, vocabulary_from_tokenizer


class ConstraintProcessor(LogitsProcessor):
    """Forbids every token that would leave the constraint's language; one per ``generate`` call."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        constraint: OutputConstraint,
        domain: int,
        rows: int = 1,
    ) -> None:
        compiler = ConstraintCompiler(vocabulary_from_tokenizer(tokenizer, domain=domain))
        compiled = compiler.compile(constraint)
        self.matchers = [compiler.matcher(compiled) for _ in range(rows)]
        self.masks = torch.zeros(rows, 1, mask_words(domain), dtype=torch.int32)
        self.seen: int | None = None

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Return the scores with the tokens outside the language at minus infinity.

        Raises: ConstraintDeadEnd — the vocabulary cannot spell what the language demands next.
        """
        for row, matcher in enumerate(self.matchers):
            if self.seen is not None and not matcher.terminated:
                matcher.preview(input_ids[row, self.seen :].tolist())
                matcher.commit()
            if not matcher.terminated:
                found = matcher.lookahead([], memoryview(self.masks[row].numpy()))
                if found.dead_ends:
                    raise ConstraintDeadEnd(f"row {row}: no token goes on from here")
        self.seen = input_ids.shape[1]
        tokens = torch.arange(scores.shape[1])
        allowed = self.masks[:, 0, tokens // 32] >> (tokens % 32) & 1
        return scores.masked_fill(allowed.to(scores.device) == 0, float("-inf"))


def main() -> None:
    """Answer one prompt with one of the given strings."""
    folder, prompt, *choices = sys.argv[1:]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    held = ConstraintProcessor(tokenizer, OutputConstraint.choice(choices), model.config.vocab_size)
    inputs = tokenizer(prompt, return_tensors="pt")
    output = model.generate(**inputs, logits_processor=[held], max_new_tokens=64, do_sample=False)
    print(tokenizer.decode(output[0, inputs.input_ids.shape[1] :], skip_special_tokens=True))


if __name__ == "__main__":
    main()
