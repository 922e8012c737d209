"""``ninfer serve``: becomes the gateway's process, which owns the server's flags."""

from __future__ import annotations

import os
import sys

import typer

GATEWAY_MODULE = "ninfer.gateway"


def serve(context: typer.Context) -> None:
    """Serve the OpenAI and Anthropic protocols over HTTP; ``ninfer serve --help`` lists flags."""
    command = [sys.executable, "-m", GATEWAY_MODULE, *context.args]
    sys.stdout.flush()
    os.execv(sys.executable, command)
