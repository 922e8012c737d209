"""``ninfer-gateway``: the server's flags and process."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ninfer.contract import DrafterError, EngineOptions, ModelError, SpeculativeBackend
from ninfer.gateway.opening import OpenEngine, open_quietly
from ninfer.gateway.options import ServerOptions

if TYPE_CHECKING:
    from ninfer.runtime import Engine, RequestLog

STATUS_BAD_INPUT = 2


class FlagError(Exception):
    """A flag that cannot be used; the message is ``--flag: fact``."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FlagError(message.removeprefix("argument "))


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
        try:
            asyncio.run(serve_until_signalled(engine, server))
        except OSError as error:
            place = f"--host {flags.host} --port {flags.port}"
            raise FlagError(f"{place}: {error.strerror or error}") from None


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


def parser() -> argparse.ArgumentParser:
    """Return the command's flags; parsing raises FlagError where one cannot be used."""
    server, engine = ServerOptions(), EngineOptions()
    flags = _Parser(
        prog="ninfer serve",
        description="Serve the OpenAI and Anthropic protocols over HTTP.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = flags.add_argument
    add("--model", type=Path, help="GGUF file or checkpoint folder; without it the embedded model")
    add("--model-id", default=server.model_id, help="public name of the model")
    add("--chat-template", type=Path, help="template file instead of the model's own")
    add("--device", help="torch device; without it CUDA where there is one")
    add("--host", default=server.host, help="address to listen on")
    add("--port", type=int, default=server.port, help="0 takes a free one")
    add("--api-key", help="what every client must send")
    add("--cors-origin", help="the origin whose pages may call, or *")
    add("--max-context", type=int, default=8192, help="tokens of prompt and answer")
    add("--kv-capacity", type=int, help="tokens of all requests; without it every row's context")
    add("--prefill-chunk", type=int, default=engine.prefill_chunk, help="prompt tokens at once")
    add("--threads", type=int, help="CPU threads; default: as torch chooses")
    backends = [backend.value for backend in SpeculativeBackend]
    add("--spec", choices=backends, default="none", help="which drafter proposes tokens")
    add("--draft-tokens", type=int, help="drafts per round, 1 to 15; without it 3")
    add("--draft-model", type=Path, help="drafter's folder; without it the model's or shipped one")
    add("--max-concurrency", type=int, default=4, help="requests at once, 1 to 8")
    add("--max-pending-requests", type=int, default=engine.max_pending_requests, help="that wait")
    add("--pending-timeout-ms", type=int, default=engine.pending_timeout_ms, help="longest wait")
    add("--grammar-cache-bytes", type=int, default=engine.grammar_cache_bytes, help="kept grammars")
    add(
        "--state-checkpoint-bytes",
        type=int,
        default=engine.state_checkpoint_bytes,
        help="device memory for states of hybrid models that later prompts start from",
    )
    add(
        "--default-max-tokens", type=int, default=server.default_max_tokens, help="if none is named"
    )
    add("--max-body-bytes", type=int, default=server.max_body_bytes, help="largest request")
    add("--response-store-records", type=int, default=server.stored_responses, help="kept at most")
    add("--response-store-bytes", type=int, default=server.stored_bytes, help="kept at most")
    add("--request-log-jsonl", type=Path, help="file to append request events to; no prompt text")
    return flags


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


def _flag_error(error: ValueError) -> FlagError:
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
            default_max_tokens=flags.default_max_tokens,
            max_body_bytes=flags.max_body_bytes,
            stored_responses=flags.response_store_records,
            stored_bytes=flags.response_store_bytes,
        )
    except ValueError as error:
        raise _flag_error(error) from None


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise FlagError(f"--chat-template {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FlagError(f"--chat-template {path}: byte {error.start} is not UTF-8") from None
