"""``ninfer run``: one prompt, one answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ninfer.cli import constraint_flags as flags
from ninfer.cli.answer import publish
from ninfer.cli.failure import InputError
from ninfer.cli.services import Invocation
from ninfer.contract import (
    ChatPrompt,
    EngineOptions,
    ExecutionOptions,
    Message,
    RequestOptions,
    Role,
    SamplingOverrides,
    StopPolicy,
    StopString,
)

_SAMPLING = "Sampling (defaults: the model's preset)"


def run(
    context: typer.Context,
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="What to answer.")],
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A system message.", show_default=False)
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="A GGUF file or a Hugging Face folder; default: the embedded model.",
            show_default=False,
        ),
    ] = None,
    chat_template: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Template instead of the model's own.", show_default=False
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Torch device; default: CUDA where there is one.", show_default=False),
    ] = None,
    max_new: Annotated[int, typer.Option(min=0, help="Most tokens to generate.")] = 128,
    max_context: Annotated[int, typer.Option(min=1, help="Tokens of prompt and answer.")] = 2048,
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
        int | None, typer.Option(help="1 to 20.", rich_help_panel=_SAMPLING, show_default=False)
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
    invocation.constraint_flag = flagged.flag if flagged else None
    chat = _conversation(prompt, system)
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
        execution=ExecutionOptions(sampling=sampling, requested_output_tokens=max_new),
        stop=_stops(stop or [], stop_token_id or []),
        phase_timings=True,
    )
    template = flags.read_text("--chat-template", chat_template) if chat_template else None
    opened = invocation.services.open_engine(
        model,
        EngineOptions(max_context=max_context),
        device=device,
        chat_template=template,
        warm_up=False,
    )
    with opened as engine:
        return publish(engine.submit(engine.prepare(chat), options), as_json=json)


def _conversation(prompt: str, system: str | None) -> ChatPrompt:
    messages = [Message(Role.USER, flags.require_text("--prompt", prompt))]
    if system is not None:
        messages.insert(0, Message(Role.SYSTEM, flags.require_text("--system", system)))
    return ChatPrompt(tuple(messages))


def _temperature(greedy: bool, temperature: float | None) -> float | None:
    if greedy and temperature is not None:
        raise InputError("--greedy and --temperature", "exclude each other", "conflicting_options")
    return 0.0 if greedy else temperature


def _stops(texts: list[str], token_ids: list[int]) -> StopPolicy:
    strings = tuple(StopString(flags.require_text("--stop", text)) for text in texts)
    return StopPolicy(token_ids=tuple(token_ids), strings=strings)
