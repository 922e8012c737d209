"""The command's entry: builds the app, runs one command, turns failures into exit statuses."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from ninfer.cli.answer import print_json
from ninfer.cli.bench.command import bench
from ninfer.cli.check import check
from ninfer.cli.failure import (
    STATUS_BAD_INPUT,
    STATUS_FAILED,
    STATUS_INTERRUPTED,
    Failure,
    InputError,
    describe,
)
from ninfer.cli.models import models
from ninfer.cli.run import run
from ninfer.cli.serve import serve
from ninfer.cli.services import Invocation, Services
from ninfer.contract import NInferError


def build_app() -> typer.Typer:
    """Return the Typer app with its five commands."""
    app = typer.Typer(
        name="ninfer",
        help="Answers that never leave the language you declare.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.command()(run)
    app.command()(check)
    # The gateway reads its own flags, --help included.
    forwarding = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(add_help_option=False, context_settings=forwarding)(serve)
    app.command()(models)
    app.command()(bench)
    return app


def run_command(arguments: Sequence[str], services: Services) -> int:
    """Run one command and return its exit status: 0, 1 failed, 2 bad input, 130 interrupted."""
    # A refused command line is never read to its end, and --json holds for the refusal too.
    invocation = Invocation(services, as_json="--json" in arguments)
    try:
        status = build_app()(
            args=list(arguments), prog_name="ninfer", standalone_mode=False, obj=invocation
        )
        return status if isinstance(status, int) else 0
    except KeyboardInterrupt:
        return STATUS_INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return STATUS_FAILED
    except typer.TyperException as error:
        failure = _usage_failure(error)
        # Without a command its help is the answer, and it has been printed.
        return _fail(failure, invocation) if failure.fact else failure.status
    except (NInferError, InputError) as error:
        return _fail(describe(error, invocation.places), invocation)


def main() -> None:
    """Run the command of this process and exit."""
    from ninfer.cli.engine import open_engine

    sys.exit(run_command(sys.argv[1:], Services(open_engine)))


def _usage_failure(error: typer.TyperException) -> Failure:
    parameter = getattr(error, "param", None)
    if isinstance(error, typer.BadParameter) and parameter is not None and error.message:
        place = max(parameter.opts, key=len)
        return Failure(place, error.message.rstrip("."), "invalid_option", STATUS_BAD_INPUT)
    message: str = getattr(error, "format_message", error.__str__)()
    return Failure("", message.rstrip("."), "invalid_option", STATUS_BAD_INPUT)


def _fail(failure: Failure, invocation: Invocation) -> int:
    if invocation.as_json:
        print_json(failure.record())
    sys.stderr.write(failure.line + "\n")
    return failure.status


def _silence_stdout() -> None:
    # The reader is gone: whatever is still buffered must not raise again at exit.
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
