"""The flags of ``ninfer serve``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from ninfer.contract import EngineOptions, SpeculativeBackend
from ninfer.gateway.answer_flags import add_answer_flags
from ninfer.gateway.options import ServerOptions


class FlagError(Exception):
    """A flag that cannot be used; the message is ``--flag: fact``."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FlagError(message.removeprefix("argument "))


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
    add("--max-body-bytes", type=int, default=server.max_body_bytes, help="largest request")
    add("--response-store-records", type=int, default=server.stored_responses, help="kept at most")
    add("--response-store-bytes", type=int, default=server.stored_bytes, help="kept at most")
    add("--request-log-jsonl", type=Path, help="file to append request events to; no prompt text")
    add_answer_flags(flags)
    return flags
