"""``ninfer serve``: the gateway, which owns the server's flags, on an engine of the command's."""

from __future__ import annotations

import typer

from ninfer.cli.services import Invocation


def serve(context: typer.Context) -> int:
    """Serve the OpenAI and Anthropic protocols over HTTP; ``ninfer serve --help`` lists flags."""
    from ninfer.gateway.main import run_gateway

    invocation: Invocation = context.obj
    return run_gateway(context.args, invocation.services.open_engine)
