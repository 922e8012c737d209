"""``ninfer run``: one prompt, one answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ninfer.cli import constraint_flags as flags
from ninfer.cli import model_flags, speculation
from ninfer.cli.answer import publish
from ninfer.cli.conversation import read_conversation
from ninfer.cli.failure import InputError
from ninfer.cli.places import Places
from ninfer.cli.services import Invocation
from ninfer.contract import (
    Channel,
    ChatPrompt,
    EngineOptions,
    ExecutionOptions,
    Message,
    OutputOptions,
    ReasoningEffort,
    RequestOptions,
    Role,
    SamplingOverrides,
    SpeculativeBackend,
    StopPolicy,
    StopString,
    ThinkingOptions,
)

_THINKING = "Thinking (for models that think)"
_SAMPLING = "Sampling (defaults: the model's preset)"


def run(
    context: typer.Context,
    prompt: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What to answer.", show_default=False)
    ] = None,
    messages: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A conversation instead: JSON messages, or {messages, tools}.",
            show_default=False,
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A system message.", show_default=False)
    ] = None,
    model: model_flags.Model = None,
    chat_template: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Template instead of the model's own.", show_default=False
        ),
    ] = None,
    device: model_flags.Device = None,
    max_new: Annotated[int, typer.Option(min=0, help="Most tokens to generate.")] = 128,
    max_context: Annotated[int, typer.Option(min=1, help="Tokens of prompt and answer.")] = 2048,
    kv_capacity: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of key-value memory.", show_default=False),
    ] = None,
    prefill_chunk: model_flags.PrefillChunk = 1024,
    threads: model_flags.Threads = None,
    spec: speculation.Spec = SpeculativeBackend.NONE,
    draft_tokens: speculation.DraftTokens = None,
    draft_model: speculation.DraftModel = None,
    grammar_file: flags.GrammarFile = None,
    json_schema_file: flags.JsonSchemaFile = None,
    json_object: flags.JsonObject = False,
    regex: flags.Regex = None,
    choice: flags.Choice = None,
    greedy: Annotated[
        bool,
        typer.Option(
            "--greedy", help="Always take the likeliest token.", rich_help_panel=_SAMPLING
        ),
    ] = False,
    temperature: Annotated[
        float | None, typer.Option(help="0 to 2.", rich_help_panel=_SAMPLING, show_default=False)
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="0 to 1.", rich_help_panel=_SAMPLING, show_default=False)
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(help="20 at most; 0: 20.", rich_help_panel=_SAMPLING, show_default=False),
    ] = None,
    min_p: Annotated[
        float | None, typer.Option(help="0 to 1.", rich_help_panel=_SAMPLING, show_default=False)
    ] = None,
    presence_penalty: Annotated[
        float | None, typer.Option(help="-2 to 2.", rich_help_panel=_SAMPLING, show_default=False)
    ] = None,
    frequency_penalty: Annotated[
        float | None, typer.Option(help="-2 to 2.", rich_help_panel=_SAMPLING, show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draws.", rich_help_panel=_SAMPLING)] = 0,
    no_thinking: Annotated[
        bool, typer.Option("--no-thinking", help="Answer directly.", rich_help_panel=_THINKING)
    ] = False,
    thinking_budget: Annotated[
        int | None,
        typer.Option(
            min=1, help="Most tokens to think.", rich_help_panel=_THINKING, show_default=False
        ),
    ] = None,
    reasoning_effort: Annotated[
        ReasoningEffort | None,
        typer.Option(help="How much to think.", rich_help_panel=_THINKING, show_default=False),
    ] = None,
    reasoning_stop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="End when the thinking holds this text; repeat.",
            rich_help_panel=_THINKING,
            show_default=False,
        ),
    ] = None,
    raw_output: Annotated[
        bool, typer.Option("--raw-output", help="Publish everything the model writes.")
    ] = False,
    print_token_ids: Annotated[
        bool, typer.Option("--print-token-ids", help="Report the ids of the answer's tokens.")
    ] = False,
    stop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="End the answer before this text; repeat.", show_default=False
        ),
    ] = None,
    stop_token_id: Annotated[
        list[int] | None, typer.Option(help="End at this token; repeat.", show_default=False)
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON result instead of the stream.")
    ] = False,
) -> int:
    """Answer one prompt, held to a constraint if one is given.

    The answer streams to stdout byte for byte; the report goes to stderr.
    """
    invocation: Invocation = context.obj
    invocation.as_json = json
    flagged = flags.read_constraint(grammar_file, json_schema_file, json_object, regex, choice)
    chat, places = _conversation(prompt, messages, system)
    stops = [*_stop_places("--stop", stop), *_stop_places("--reasoning-stop", reasoning_stop)]
    invocation.places = replace(
        places, constraint=flagged.flag if flagged else None, stops=tuple(stops)
    )
    thinking = replace(
        chat.options,
        enable_thinking=False if no_thinking else None,
        reasoning_effort=reasoning_effort,
    )
    sampling = SamplingOverrides(
        temperature=_temperature(greedy, temperature),
        top_p=top_p,
        top_k=top_k,
        min_p=min_p,
        presence_penalty=presence_penalty,
        frequency_penalty=frequency_penalty,
        seed=seed,
    )
    options = RequestOptions(
        constraint=flagged.constraint if flagged else None,
        execution=ExecutionOptions(
            sampling=sampling,
            requested_output_tokens=max_new,
            thinking=ThinkingOptions(thinking_budget),
        ),
        stop=_stops(stop or [], reasoning_stop or [], stop_token_id or []),
        output=OutputOptions(raw=raw_output),
        phase_timings=True,
    )
    template = flags.read_text("--chat-template", chat_template) if chat_template else None
    engine_options = EngineOptions(
        max_context=max_context,
        kv_tokens=kv_capacity,
        prefill_chunk=prefill_chunk,
        compute_threads=threads,
        # One prompt: none comes later that could start from its states.
        state_checkpoint_bytes=0,
        speculative=spec,
        draft_tokens=speculation.draft_count(spec, draft_tokens, draft_model),
    )
    opened = invocation.services.open_engine(
        model,
        engine_options,
        device=device,
        drafter_path=draft_model,
        chat_template=template,
        warm_up=False,
    )
    with opened as engine:
        handle = engine.start(replace(chat, options=thinking), options)
        return publish(handle, as_json=json, with_token_ids=print_token_ids)


def _conversation(
    prompt: str | None, messages: Path | None, system: str | None
) -> tuple[ChatPrompt, Places]:
    if (prompt is None) == (messages is None):
        fact = "exactly one is required"
        raise InputError("--prompt and --messages", fact, "conflicting_options")
    if prompt is None:
        assert messages is not None
        chat, message_places, tool_places = read_conversation(messages)
        places = Places(None, f"--messages {messages}", message_places, tool_places)
    else:
        chat = ChatPrompt((Message(Role.USER, flags.require_text("--prompt", prompt)),))
        places = Places(messages=("--prompt",))
    if system is None:
        return chat, places
    first = Message(Role.SYSTEM, flags.require_text("--system", system))
    chat = replace(chat, messages=(first, *chat.messages))
    return chat, replace(places, messages=("--system", *places.messages))


def _stop_places(flag: str, texts: list[str] | None) -> list[str]:
    return [f"{flag}[{index}]" for index in range(len(texts or []))]


def _temperature(greedy: bool, temperature: float | None) -> float | None:
    if greedy and temperature is not None:
        raise InputError("--greedy and --temperature", "exclude each other", "conflicting_options")
    return 0.0 if greedy else temperature


def _stops(texts: list[str], reasoning: list[str], token_ids: list[int]) -> StopPolicy:
    content = [StopString(flags.require_text("--stop", text)) for text in texts]
    thoughts = [
        StopString(flags.require_text("--reasoning-stop", text), Channel.REASONING)
        for text in reasoning
    ]
    return StopPolicy(token_ids=tuple(token_ids), strings=(*content, *thoughts))
