"""``ninfer bench``: the flags, one engine, every case in turn."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from ninfer.cli import model_flags, speculation
from ninfer.cli.bench.formats import OutputFormat, formatted
from ninfer.cli.bench.grid import MOST_ROWS, Case, cases, length_tests, numbers
from ninfer.cli.bench.measure import Measurement, measure
from ninfer.cli.bench.plot import plot as plot_report
from ninfer.cli.bench.record import Load, Report
from ninfer.cli.bench.workload import constraint_names
from ninfer.cli.constraint_flags import read_text
from ninfer.cli.failure import InputError
from ninfer.cli.services import Invocation
from ninfer.contract import EngineOptions, SpeculativeBackend


def bench(
    context: typer.Context,
    prompts: Annotated[
        str, typer.Option("-p", metavar="LIST", help="Prompt lengths, one output token each.")
    ] = "512",
    outputs: Annotated[
        str, typer.Option("-n", metavar="LIST", help="Answer lengths after a short prompt.")
    ] = "128",
    pairs: Annotated[
        str, typer.Option("-pg", metavar="P,G;…", help="Pairs of prompt and answer lengths.")
    ] = "",
    constraint: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="Any of none, json_object, schema, regex, choice; with commas."
        ),
    ] = "none",
    json_schema_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The document of 'schema'; default: its own.", show_default=False
        ),
    ] = None,
    batch: Annotated[
        str, typer.Option("--batch", "-b", metavar="LIST", help="Requests at once, 1 to 8.")
    ] = "1",
    repetitions: Annotated[
        int, typer.Option("--repetitions", "-r", min=1, help="Measured runs of each case.")
    ] = 3,
    warmup: Annotated[int, typer.Option(min=0, help="Runs before them; they compile.")] = 1,
    model: model_flags.Model = None,
    device: model_flags.Device = None,
    max_context: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of a request; default: the longest.", show_default=False),
    ] = None,
    prefill_chunk: model_flags.PrefillChunk = 1024,
    threads: model_flags.Threads = None,
    spec: speculation.Spec = SpeculativeBackend.NONE,
    draft_tokens: speculation.DraftTokens = None,
    draft_model: speculation.DraftModel = None,
    output: Annotated[
        OutputFormat, typer.Option("--output", "-o", help="How to write the numbers.")
    ] = OutputFormat.TABLE,
    output_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write them instead of stdout.", show_default=False
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw an SVG chart too.", show_default=False),
    ] = None,
) -> None:
    """Measure speed and the cost of constraints: every test, constraint and batch combined.

    Tests are called pp (prompt), tg (answer) and pp+tg. Numbers go to stdout, progress to stderr.
    """
    invocation: Invocation = context.obj
    tests = length_tests(prompts, outputs, pairs)
    rows = numbers("--batch", batch, most=MOST_ROWS)
    if not rows:
        raise InputError("--batch", "no number is named")
    wanted = cases(tests, constraint_names(constraint), list(dict.fromkeys(rows)))
    schema = read_text("--json-schema-file", json_schema_file) if json_schema_file else None
    _require_folders({"--output-file": output_file, "--plot": plot})
    options = EngineOptions(
        max_concurrency=max(rows),
        max_context=max_context or max(test.context_tokens for test in tests),
        prefill_chunk=prefill_chunk,
        compute_threads=threads,
        # No prompt starts from another one's states.
        state_checkpoint_bytes=0,
        speculative=spec,
        draft_tokens=speculation.draft_count(spec, draft_tokens, draft_model),
    )
    started = perf_counter()
    opened = invocation.services.open_engine(
        model, options, device=device, drafter_path=draft_model, warm_up=False
    )
    with opened as engine:
        load = Load(str(model or "embedded"), device or "default", perf_counter() - started)
        found = []
        for case in wanted:
            found.append(
                measure(engine, case, repetitions=repetitions, warm_ups=warmup, schema=schema)
            )
            _show(found[-1])
        report = Report(load, options, engine.memory_summary(), found)
    _write("--output-file", output_file, formatted(report, output))
    if plot is not None:
        _write("--plot", plot, plot_report(report))


def _show(measurement: Measurement) -> None:
    case: Case = measurement.case
    prefill, decode = (measurement.spread(r).mean for r in ("prefill_tok_s", "decode_tok_s"))
    speeds = f"prefill {prefill:.1f} tokens/s"
    if decode:
        speeds += f", decode {decode:.1f} tokens/s"
    sys.stderr.write(f"{case.label}: {speeds}\n")
    sys.stderr.flush()


def _require_folders(files: dict[str, Path | None]) -> None:
    """Find out before anything is measured that results could not be written."""
    for option, path in files.items():
        if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
            raise InputError(f"{option} {path}", "is not a file in an existing folder")


def _write(option: str, path: Path | None, text: str) -> None:
    if path is None:
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{option} {path}", error.strerror or str(error)) from None
