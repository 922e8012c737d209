"""Builds the Sanic app around one engine."""

from __future__ import annotations

import hmac
import logging
import os
import secrets
from typing import Any

from sanic import Request, Sanic
from sanic.exceptions import SanicException
from sanic.response import BaseHTTPResponse, HTTPResponse

from ninfer.contract import IntegrityError, NInferError
from ninfer.gateway.chat.routes import chat
from ninfer.gateway.cors import allow_origin, answer_preflight
from ninfer.gateway.exposition import metrics
from ninfer.gateway.failure import Failure, WireError
from ninfer.gateway.generation import GenerationService
from ninfer.gateway.health import health
from ninfer.gateway.messages.errors import anthropic_status
from ninfer.gateway.messages.errors import error_record as anthropic_record
from ninfer.gateway.messages.routes import messages
from ninfer.gateway.openai.errors import error_record
from ninfer.gateway.openai.models import models
from ninfer.gateway.options import ServerOptions
from ninfer.gateway.page.routes import page
from ninfer.gateway.request import WireRequest
from ninfer.gateway.responses.routes import responses
from ninfer.gateway.responses.store import ResponseStore
from ninfer.gateway.state import (
    Gateway,
    failure_of,
    gateway_of,
    json_response,
    request_id_of,
)
from ninfer.runtime import Engine

App = Sanic[Any, Any]
_LOG = logging.getLogger("ninfer.gateway")
_DAY_SECONDS = 86_400
_OPEN_PATHS = ("/", "/health", "/openapi.json")
_ANTHROPIC_PATHS = "/v1/messages"
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "request_too_large"}


def create_app(engine: Engine, options: ServerOptions) -> App:
    """Return an app that serves one engine; the caller owns and closes the engine."""
    name = f"ninfer-{secrets.token_hex(4)}"
    app: App = Sanic(name, configure_logging=False, request_class=WireRequest)
    app.config.REQUEST_MAX_SIZE = options.max_body_bytes
    # A long answer is no stuck response: the engine's own limits end it.
    app.config.RESPONSE_TIMEOUT = _DAY_SECONDS
    # Sanic would rewrite its own protocol class at start, which a second app in the process breaks.
    app.config.TOUCHUP = False
    # For clients that left, whom no handler answers; without it Sanic guesses, and warns of it.
    app.config.FALLBACK_ERROR_FORMAT = "json"
    app.config.GRACEFUL_SHUTDOWN_TIMEOUT = options.shutdown_seconds
    limits = engine.options
    service = GenerationService(
        engine,
        preparation_threads=limits.max_concurrency + limits.max_pending_requests + 1,
        silence_seconds=options.silence_seconds,
    )
    app.ctx.gateway = Gateway(service, options)
    app.ctx.responses = ResponseStore(options.stored_responses, options.stored_bytes)
    for blueprint in (page, health, metrics, models, chat, responses, messages):
        app.blueprint(blueprint)
    app.register_middleware(answer_preflight, "request")
    app.register_middleware(_authorize, "request")
    app.register_middleware(_label_response, "response")
    app.register_middleware(allow_origin, "response")
    app.exception(Exception)(_fail)
    return app


async def _authorize(request: Request) -> None:
    key = gateway_of(request).options.api_key
    if key is None or request.path in _OPEN_PATHS:
        return
    given = request.headers.get("x-api-key") or request.token or ""
    # Headers and flags are bytes of any kind; those that are not UTF-8 come as lone surrogates.
    if not hmac.compare_digest(os.fsencode(given), os.fsencode(key)):
        raise WireError("the API key is missing or wrong", code="invalid_api_key", status=401)


async def _label_response(request: Request, response: BaseHTTPResponse) -> None:
    is_anthropic = request.path.startswith(_ANTHROPIC_PATHS)
    header = "request-id" if is_anthropic else "x-request-id"
    response.headers[header] = request_id_of(request)


async def _fail(request: Request, error: Exception) -> HTTPResponse:
    failure = _failure(request, error)
    if failure.status >= 500 and (
        isinstance(error, IntegrityError) or not isinstance(error, NInferError)
    ):
        _LOG.error("%s %s failed", request.method, request.path, exc_info=error)
    if request.path.startswith(_ANTHROPIC_PATHS):
        record = anthropic_record(failure, request_id_of(request))
        return json_response(record, anthropic_status(failure))
    return json_response(error_record(failure), failure.status)


def _failure(request: Request, error: Exception) -> Failure:
    if isinstance(error, SanicException):
        status = error.status_code or 500
        return Failure(status, _CODES.get(status), str(error))
    return failure_of(request, error)
