"""A small model without weights: a byte-level tokenizer, Qwen-like marks and chat templates."""

from __future__ import annotations

from functools import cache
from typing import Any

from ninfer.contract import ChatPrompt, Message, PromptOptions, Role
from ninfer.qwen_frontend import Frontend, ModelFacts, find_reasoning_markers

MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>")
PLAIN_MARKS = ("<tool_call>", "</tool_call>", "<think>", "</think>")
MERGED = ("\n\n", ">\n\n", "</", "function", "parameter", "=", '":', '{"', '"}', "true", "上海")

QWEN_STYLE = """\
{%- macro text_of(content) -%}{{ content if content is string else '' }}{%- endmacro -%}
{%- if not messages %}{{ raise_exception('no messages') }}{% endif -%}
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{ text_of(messages[0].content) + '\\n\\n' }}{% endif %}
{{- '# Tools\\n\\n<tools>' }}
{%- for tool in tools %}{{ '\\n' }}{{ tool | tojson }}{% endfor %}
{{- '\\n</tools><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + text_of(messages[0].content) + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- set content = text_of(message.content) | trim %}
{%- if message.role == 'system' %}
{%- if not loop.first %}{{ raise_exception('System message must be at the beginning.') }}{% endif %}
{%- elif message.role == 'user' %}
{{- '<|im_start|>user\\n' + content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' }}
{%- if loop.last or preserve_thinking %}
{{- '<think>\\n' + (message.reasoning_content or '') + '\\n</think>\\n\\n' }}
{%- endif %}
{{- content }}
{%- for tool_call in message.tool_calls or [] %}
{%- set call = tool_call.function %}
{{- ('\\n\\n' if content else '') if loop.first else '\\n' }}
{{- '<tool_call>\\n<function=' + call.name + '>\\n' }}
{%- for key, value in call.arguments | items %}
{{- '<parameter=' + key + '>\\n' }}
{{- value if value is string else value | tojson }}
{{- '\\n</parameter>\\n' }}
{%- endfor %}
{{- '</function>\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + content + '\\n</tool_response><|im_end|>\\n' }}
{%- else %}
{{- raise_exception('Unexpected role: ' + message.role) }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}
{{- '<think>\\n\\n</think>\\n\\n' }}
{%- else %}
{{- '<think>\\n' }}
{%- endif %}
{%- endif %}
"""

EFFORT_STYLE = (
    "{% set effort = reasoning_effort | default('xhigh') %}"
    "{% if effort not in ['low', 'medium', 'xhigh'] %}{{ raise_exception('effort') }}{% endif %}"
    "{{ '<|im_start|>system\neffort: ' + effort + '<|im_end|>\n' }}" + QWEN_STYLE
)

MODEL_OPENS_STYLE = QWEN_STYLE.replace("{{- '<think>\\n' }}\n{%- endif %}", "{%- endif %}")
assert MODEL_OPENS_STYLE != QWEN_STYLE

PLAIN_STYLE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@cache
def small_tokenizer_json() -> str:
    """Return a byte-level tokenizer with a few merges and the marks of a Qwen-like model."""
    from tokenizers import AddedToken, Tokenizer, decoders, models
    from tokenizers.pre_tokenizers import ByteLevel

    letters = sorted(ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(mark, normalized=False) for mark in MARKS])
    plain = (*PLAIN_MARKS, *MERGED)
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in plain])
    return str(tokenizer.to_str())


def small_facts(template: str | None = QWEN_STYLE, **changes: Any) -> ModelFacts:
    """Return the facts of the small model; three ids past the tokenizer are padding."""
    first = 256
    facts = {
        "tokenizer_json": small_tokenizer_json(),
        "token_domain": first + len(MARKS) + len(PLAIN_MARKS) + len(MERGED) + 3,
        "eos_ids": (first + 2, first),
        "control_ids": tuple(range(first, first + len(MARKS))),
        "chat_template": template,
        "eos_token": "<|im_end|>",
        "model_name": "small",
        "reasoning": find_reasoning_markers(template),
    }
    return ModelFacts(**(facts | changes))  # type: ignore[arg-type]


@cache
def small_frontend(template: str = QWEN_STYLE) -> Frontend:
    """Return a shared frontend of the small model."""
    return Frontend(small_facts(template))


def chat(*texts: str, **options: Any) -> ChatPrompt:
    """Return a conversation that alternates user and assistant."""
    roles = (Role.USER, Role.ASSISTANT)
    messages = tuple(Message(roles[i % 2], text) for i, text in enumerate(texts))
    return ChatPrompt(messages, PromptOptions(**options))
