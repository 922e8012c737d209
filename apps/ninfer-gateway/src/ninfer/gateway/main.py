"""``ninfer-gateway``: the server's flags and process."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING

from ninfer.contract import EngineOptions, ModelError
from ninfer.gateway.options import ServerOptions

if TYPE_CHECKING:
    from ninfer.runtime import Engine

    OpenEngine = Callable[[Path | None, EngineOptions], AbstractContextManager[Engine]]

STATUS_BAD_INPUT = 2


def main() -> None:
    """Serve until signalled and exit: 0, or 2 when an option, the model or the address is bad."""
    sys.exit(run_gateway(sys.argv[1:], _open_engine))


def run_gateway(arguments: Sequence[str], open_engine: OpenEngine) -> int:
    """Serve until signalled and return the exit status."""
    flags = parser().parse_args(arguments)
    try:
        options = _engine_options(flags)
    except ValueError as error:
        name, _, fact = str(error).partition(": ")
        return _refuse(f"--{name.replace('_', '-')}", fact)
    from ninfer.gateway.server import serve_until_signalled

    try:
        with open_engine(flags.model, options) as engine:
            asyncio.run(serve_until_signalled(engine, _server_options(flags)))
    except ModelError as error:
        return _refuse("--model", str(error))
    except OSError as error:
        return _refuse(f"--host {flags.host} --port {flags.port}", error.strerror or str(error))
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command's flags."""
    server, engine = ServerOptions(), EngineOptions()
    flags = argparse.ArgumentParser(
        prog="ninfer serve",
        description="Serve the OpenAI and Anthropic protocols over HTTP.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = flags.add_argument
    add("--model", type=Path, help="GGUF file or checkpoint folder; without it the embedded model")
    add("--model-id", default=server.model_id, help="public name of the model")
    add("--host", default=server.host, help="address to listen on")
    add("--port", type=int, default=server.port, help="0 takes a free one")
    add("--api-key", help="what every client must send")
    add("--max-context", type=int, default=8192, help="tokens of prompt and answer")
    add("--max-concurrency", type=int, default=4, help="requests at once, 1 to 8")
    add("--max-pending-requests", type=int, default=engine.max_pending_requests, help="that wait")
    add("--pending-timeout-ms", type=int, default=engine.pending_timeout_ms, help="longest wait")
    add(
        "--default-max-tokens",
        type=int,
        default=server.default_max_tokens,
        help="answer length where a request names none",
    )
    return flags


def _refuse(place: str, fact: str) -> int:
    sys.stderr.write(f"error: {place}: {fact}\n")
    return STATUS_BAD_INPUT


def _open_engine(model: Path | None, options: EngineOptions) -> AbstractContextManager[Engine]:
    from ninfer.runtime import open_engine

    return closing(open_engine(model, options))


def _engine_options(flags: argparse.Namespace) -> EngineOptions:
    return EngineOptions(
        max_context=flags.max_context,
        max_concurrency=flags.max_concurrency,
        max_pending_requests=flags.max_pending_requests,
        pending_timeout_ms=flags.pending_timeout_ms,
    )


def _server_options(flags: argparse.Namespace) -> ServerOptions:
    return ServerOptions(
        host=flags.host,
        port=flags.port,
        model_id=flags.model_id,
        api_key=flags.api_key,
        default_max_tokens=flags.default_max_tokens,
    )
