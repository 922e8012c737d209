"""``ninfer-gateway``: the server's process, from flags to an exit status."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ninfer.contract import (
    DrafterError,
    EngineOptions,
    InvalidOption,
    ModelError,
    SpeculativeBackend,
)
from ninfer.gateway.answer_flags import answer_defaults
from ninfer.gateway.flags import FlagError, parser
from ninfer.gateway.opening import OpenEngine, open_quietly
from ninfer.gateway.options import ServerOptions

if TYPE_CHECKING:
    from ninfer.runtime import Engine, RequestLog

STATUS_BAD_INPUT = 2


def main() -> None:
    """Serve until signalled and exit: 0, or 2 when an option, the model or the address is bad."""
    sys.exit(run_gateway(sys.argv[1:], open_quietly))


def run_gateway(arguments: Sequence[str], open_engine: OpenEngine) -> int:
    """Serve until signalled and return the exit status."""
    try:
        _serve(parser().parse_args(arguments), open_engine)
    except FlagError as error:
        return _refuse(str(error))
    except DrafterError as error:
        return _refuse(f"--draft-model: {error}")
    except ModelError as error:
        return _refuse(f"--model: {error}")
    return 0


def _refuse(text: str) -> int:
    sys.stderr.write(f"error: {text}\n")
    return STATUS_BAD_INPUT


def _serve(flags: argparse.Namespace, open_engine: OpenEngine) -> None:
    options, server = _engine_options(flags), _server_options(flags)
    template = _read(flags.chat_template) if flags.chat_template else None
    from ninfer.gateway.server import serve_until_signalled
    from ninfer.runtime import JsonLinesLog

    log = None
    if flags.request_log_jsonl is not None:
        try:
            log = JsonLinesLog(flags.request_log_jsonl)
        except OSError as error:
            raise FlagError(f"--request-log-jsonl {error.filename}: {error.strerror}") from None
        log.server_start(server.public_facts())
    with _opened(flags, options, template, log, open_engine) as engine:
        if server.answers.thinking_budget is not None:
            _require_thinking(engine)
        try:
            asyncio.run(serve_until_signalled(engine, server))
        except OSError as error:
            place = f"--host {flags.host} --port {flags.port}"
            raise FlagError(f"{place}: {error.strerror or error}") from None


def _require_thinking(engine: Engine) -> None:
    # Otherwise every request would be refused for a budget that it did not ask for.
    from ninfer.qwen_frontend import Frontend

    frontend = engine.frontend
    if isinstance(frontend, Frontend) and frontend.facts.reasoning is None:
        raise FlagError("--default-thinking-budget: the model does not think")


@contextmanager
def _opened(
    flags: argparse.Namespace,
    options: EngineOptions,
    template: str | None,
    log: RequestLog | None,
    open_engine: OpenEngine,
) -> Iterator[Engine]:
    with ExitStack() as stack:
        try:
            opened = open_engine(
                flags.model,
                options,
                device=flags.device,
                drafter_path=flags.draft_model,
                chat_template=template,
                log=log,
            )
            engine = stack.enter_context(opened)
        except ValueError as error:
            raise _flag_error(error) from None
        except RuntimeError as error:
            # What torch says of a device that it does not know or cannot reach.
            if flags.device is None:
                raise
            raise FlagError(f"--device {flags.device}: {str(error).splitlines()[0]}") from error
        yield engine


def _engine_options(flags: argparse.Namespace) -> EngineOptions:
    backend = SpeculativeBackend(flags.spec)
    try:
        return EngineOptions(
            speculative=backend,
            draft_tokens=_draft_tokens(flags, backend),
            max_context=flags.max_context,
            kv_tokens=flags.kv_capacity,
            prefill_chunk=flags.prefill_chunk,
            compute_threads=flags.threads,
            max_concurrency=flags.max_concurrency,
            max_pending_requests=flags.max_pending_requests,
            pending_timeout_ms=flags.pending_timeout_ms,
            grammar_cache_bytes=flags.grammar_cache_bytes,
            state_checkpoint_bytes=flags.state_checkpoint_bytes,
        )
    except ValueError as error:
        raise _flag_error(error) from None


_FLAGS_OF = {
    "kv_tokens": "kv-capacity",
    "compute_threads": "threads",
    "stored_responses": "response-store-records",
    "stored_bytes": "response-store-bytes",
}


def _flag_error(error: ValueError | InvalidOption) -> FlagError:
    name, _, fact = str(error).partition(": ")
    flag = _FLAGS_OF.get(name, name.replace("_", "-"))
    return FlagError(f"--{flag}: {fact}")


def _draft_tokens(flags: argparse.Namespace, backend: SpeculativeBackend) -> int:
    for name in ("draft_tokens", "draft_model"):
        if backend is SpeculativeBackend.NONE and getattr(flags, name) is not None:
            raise FlagError(f"--{name.replace('_', '-')}: needs --spec mtp, dflash or dflash2")
    if flags.draft_tokens is None:
        return backend.default_draft_tokens
    if flags.draft_tokens < 1:
        raise FlagError(f"--draft-tokens: {flags.draft_tokens} is less than 1")
    return int(flags.draft_tokens)


def _server_options(flags: argparse.Namespace) -> ServerOptions:
    try:
        return ServerOptions(
            host=flags.host,
            port=flags.port,
            model_id=flags.model_id,
            api_key=flags.api_key,
            cors_origin=flags.cors_origin,
            answers=answer_defaults(flags),
            max_body_bytes=flags.max_body_bytes,
            stored_responses=flags.response_store_records,
            stored_bytes=flags.response_store_bytes,
        )
    except (ValueError, InvalidOption) as error:
        raise _flag_error(error) from None


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise FlagError(f"--chat-template {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FlagError(f"--chat-template {path}: byte {error.start} is not UTF-8") from None
