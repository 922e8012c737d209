"""The server's life: keys, overload, silence, clients that leave, shutdown."""

import asyncio
import contextlib
import json
import os
import socket
import threading
import time
import warnings
from urllib.parse import quote

import httpx
import openai
import pytest

from ninfer.contract import EngineOptions
from ninfer.gateway.options import ServerOptions
from ninfer.gateway.server import listen
from support.answering import scripted_engine
from support.serving import MODEL_ID, serving

LONG = "abcdefghij" * 40


def body(**fields) -> dict:
    message = {"role": "user", "content": "x"}
    return {"model": MODEL_ID, "messages": [message], "temperature": 0} | fields


def slow(seconds: float):
    return lambda name: time.sleep(seconds) if name == "decode" else None


def wait_until(condition, seconds: float = 10.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it never happened"
        time.sleep(0.01)


def test_a_key_is_required_where_one_is_set():
    options = ServerOptions(port=0, model_id=MODEL_ID, api_key="secret")
    with scripted_engine("hi") as engine, serving(engine, options) as url:
        refused = httpx.post(f"{url}/v1/chat/completions", json=body())
        assert refused.status_code == 401
        assert refused.json()["error"]["code"] == "invalid_api_key"
        for headers in ({"authorization": "Bearer secret"}, {"x-api-key": "secret"}):
            reply = httpx.post(f"{url}/v1/chat/completions", json=body(), headers=headers)
            assert reply.status_code == 200
        assert httpx.get(f"{url}/health").status_code == 200


def test_a_body_over_the_limit_is_a_413():
    options = ServerOptions(port=0, model_id=MODEL_ID, max_body_bytes=2000)
    with scripted_engine("hi") as engine, serving(engine, options) as url:
        reply = httpx.post(f"{url}/v1/chat/completions", content=b" " * 5000)
        assert reply.status_code == 413
        assert reply.json()["error"]["code"] == "request_too_large"


@pytest.mark.parametrize(
    "line",
    [
        b"CONNECT x:1 HTTP/1.1",
        b"GET ? HTTP/1.1",
        b"GET \\ HTTP/1.1",
        b"GET http://[::1/health HTTP/1.1",
        b"GET http://x:99999999/health HTTP/1.1",
        b"GET /health?\x00 HTTP/1.1",
        b"GET /\xff HTTP/1.1",
        b"no request",
        b"PRI * HTTP/2.0",
    ],
)
def test_a_line_that_is_no_request_gets_a_reply_and_leaves_no_trace(line, caplog):
    with scripted_engine("x") as engine, serving(engine) as url:
        place = ("127.0.0.1", int(url.rpartition(":")[2]))
        with socket.create_connection(place, timeout=10) as connection:
            connection.sendall(line + b"\r\nHost: x\r\n\r\n")
            reply = b"".join(iter(lambda: connection.recv(4096), b""))
        assert httpx.get(f"{url}/health").is_success
    head, _, told = reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(told)["error"]["message"]
    assert not caplog.records


def test_silence_is_filled_with_comments():
    options = ServerOptions(port=0, model_id=MODEL_ID, silence_seconds=0.02)
    engine = scripted_engine("abc", fault=slow(0.1))
    with engine, serving(engine, options) as url:
        reply = httpx.post(f"{url}/v1/chat/completions", json=body(stream=True))
        assert reply.text.count(": keep-alive\n\n") >= 3
        assert reply.text.endswith("data: [DONE]\n\n")


def test_too_many_requests_are_refused_with_429():
    options = EngineOptions(max_concurrency=1, max_pending_requests=0)
    with scripted_engine(LONG, options, fault=slow(0.02)) as engine, serving(engine) as url:
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body(stream=True)) as first:
            parts = first.iter_bytes()
            next(parts)
            second = httpx.post(f"{url}/v1/chat/completions", json=body())
            assert second.status_code == 429
            assert second.json()["error"]["code"] == "server_overloaded"
        wait_until(lambda: engine.stats().requests_outstanding == 0)


def test_a_request_that_waits_too_long_is_a_503():
    options = EngineOptions(max_concurrency=1, max_pending_requests=2, pending_timeout_ms=100)
    with scripted_engine(LONG, options, fault=slow(0.02)) as engine, serving(engine) as url:
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body(stream=True)) as first:
            parts = first.iter_bytes()
            next(parts)
            second = httpx.post(f"{url}/v1/chat/completions", json=body(stream=True))
            assert second.status_code == 503
            assert second.json()["error"]["code"] == "request_queue_timeout"


@pytest.mark.parametrize("streams", [True, False])
def test_a_client_that_leaves_cancels_its_request(streams):
    with scripted_engine(LONG, fault=slow(0.02)) as engine, serving(engine) as url:
        asked = httpx.Client(timeout=0.3).stream(
            "POST", f"{url}/v1/chat/completions", json=body(stream=streams)
        )
        with contextlib.suppress(httpx.ReadTimeout), asked as reply:
            next(reply.iter_bytes())
        wait_until(lambda: engine.stats().outcomes["cancelled"] == 1)
        assert engine.stats().requests_outstanding == 0
        assert httpx.post(f"{url}/v1/chat/completions", json=body(max_tokens=2)).is_success


@pytest.mark.parametrize("ending", [b"", b"GET /heal"], ids=["asked", "half-asked"])
def test_a_client_that_leaves_is_no_news(ending):
    asked = json.dumps(body(stream=False)).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with scripted_engine(LONG, fault=slow(0.02)) as engine, serving(engine) as url:
            place = ("127.0.0.1", int(url.rpartition(":")[2]))
            with socket.create_connection(place) as connection:
                connection.sendall(ending or head % len(asked) + asked)
                if not ending:
                    wait_until(lambda: engine.stats().requests_outstanding == 1)
            wait_until(lambda: engine.stats().requests_outstanding == 0)
            # Connections are taken in order: behind this one, the left one has been taken.
            assert httpx.get(f"{url}/health").is_success
    assert [str(warning.message) for warning in said] == []


def test_shutdown_lets_open_streams_end():
    replies = []

    def ask(url: str) -> None:
        replies.append(httpx.post(f"{url}/v1/chat/completions", json=body(stream=True)))

    engine = scripted_engine("abcdefghij", fault=slow(0.03))
    with engine:
        with serving(engine) as url:
            asker = threading.Thread(target=ask, args=(url,))
            asker.start()
            wait_until(lambda: engine.stats().requests_running == 1)
        asker.join()
    assert replies[0].text.endswith("data: [DONE]\n\n")


def test_shutdown_cuts_streams_that_do_not_end():
    options = ServerOptions(port=0, model_id=MODEL_ID, shutdown_seconds=0.2)
    errors = []

    def ask(url: str) -> None:
        try:
            httpx.post(f"{url}/v1/chat/completions", json=body(stream=True))
        except httpx.HTTPError as error:
            errors.append(error)

    with scripted_engine(LONG, fault=slow(0.05)) as engine:
        with serving(engine, options) as url:
            asker = threading.Thread(target=ask, args=(url,))
            asker.start()
            wait_until(lambda: engine.stats().requests_running == 1)
        asker.join()
        wait_until(lambda: engine.stats().outcomes["cancelled"] == 1)
    assert errors


def test_an_engine_failure_inside_a_stream_is_its_last_event():
    def fault(name: str) -> None:
        if name == "decode":
            raise OSError("the device is gone")

    with scripted_engine("abc", fault=fault) as engine, serving(engine) as url:
        reply = httpx.post(f"{url}/v1/chat/completions", json=body(stream=True))
        assert reply.status_code == 200
        last = reply.text.strip().split("\n\n")[-1]
        assert json.loads(last.removeprefix("data: "))["error"]["type"] == "api_error"
        wait_until(lambda: not engine.is_available)
        assert httpx.get(f"{url}/health").status_code == 503
        after = httpx.post(f"{url}/v1/chat/completions", json=body())
        assert after.status_code == 503
        assert after.json()["error"]["code"] == "service_unavailable"


def test_many_streams_at_once_stay_apart():
    def script(conversation: str) -> str:
        return conversation.split("user\n")[1].split("\n")[0][::-1]

    async def ask(client: httpx.AsyncClient, url: str, number: int) -> bool:
        word = f"word-{number}-{'x' * (number % 7)}"
        fields = body(stream=True, messages=[{"role": "user", "content": word}])
        text = ""
        async with client.stream("POST", f"{url}/v1/chat/completions", json=fields) as reply:
            async for line in reply.aiter_lines():
                if line.startswith("data: {"):
                    record = json.loads(line.removeprefix("data: "))
                    text += record["choices"][0]["delta"].get("content") or ""
        return text == word[::-1]

    async def ask_all(url: str) -> list[bool]:
        async with httpx.AsyncClient(timeout=60) as client:
            return await asyncio.gather(*(ask(client, url, n) for n in range(24)))

    options = EngineOptions(max_concurrency=8, max_pending_requests=32)
    with scripted_engine(script, options) as engine, serving(engine) as url:
        assert all(asyncio.run(ask_all(url)))
        assert engine.stats().outcomes["completed"] == 24


def test_a_client_that_does_not_read_holds_up_nobody():
    options = EngineOptions(max_concurrency=2)
    script = "x" * 40_000
    engine = scripted_engine(script, options, context_tokens=50_000, kv_tokens=60_000)
    with engine, serving(engine) as url:
        with httpx.stream(
            "POST", f"{url}/v1/chat/completions", json=body(stream=True, max_tokens=6000)
        ) as lazy:
            assert lazy.status_code == 200
            reply = httpx.post(f"{url}/v1/chat/completions", json=body(max_tokens=50), timeout=20)
            assert reply.json()["usage"]["completion_tokens"] == 50
        wait_until(lambda: engine.stats().requests_outstanding == 0)


def test_accepted_connections_notice_a_peer_that_vanished():
    listener = listen(ServerOptions(port=0))
    with listener, socket.create_connection(listener.getsockname()):
        listener.setblocking(True)
        accepted, _ = listener.accept()
        with accepted:
            milliseconds = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert 0 < milliseconds <= 15_000
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


@pytest.mark.parametrize("name", ["owner/model", "a model", "é%20"])
def test_a_model_is_shown_under_the_name_that_clients_escape(name):
    options = ServerOptions(port=0, model_id=name)
    with scripted_engine("x") as engine, serving(engine, options) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        assert client.models.retrieve(name).id == name
        for path in (quote(name), quote(name, safe="")):
            assert httpx.get(f"{url}/v1/models/{path}").json()["id"] == name


@pytest.mark.parametrize("header", ["x-api-key", "authorization"])
def test_a_key_is_compared_byte_for_byte(header):
    key = b"k\xff\xc3\xa9"
    options = ServerOptions(port=0, model_id=MODEL_ID, api_key=os.fsdecode(key))
    with scripted_engine("x") as engine, serving(engine, options) as url:
        for given, status in ((key, 200), (b"k", 401), (b"\xff\xfe", 401)):
            value = given if header == "x-api-key" else b"Bearer " + given
            assert httpx.get(f"{url}/v1/models", headers={header: value}).status_code == status


@pytest.mark.parametrize(("asked_tokens", "held_tokens"), [(4096, 512), (512, 512)])
def test_a_model_is_shown_with_the_context_it_holds(asked_tokens, held_tokens):
    options = EngineOptions(max_context=asked_tokens)
    engine = scripted_engine("x", options, context_tokens=held_tokens)
    with engine, serving(engine) as url:
        shown = httpx.get(f"{url}/v1/models/{MODEL_ID}").json()["max_model_len"]
        longest = body(messages=[{"role": "user", "content": "x" * held_tokens}])
        refused = httpx.post(f"{url}/v1/chat/completions", json=longest).json()["error"]
    assert shown == held_tokens
    assert refused["message"].endswith(f"the context holds {shown}")
