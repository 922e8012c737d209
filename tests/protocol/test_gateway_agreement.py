"""The same request by three protocols: one answer, one report; metrics, log and origin besides."""

import json
import time

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ninfer.contract import EngineOptions
from ninfer.gateway.options import ServerOptions
from ninfer.runtime import JsonLinesLog
from support.answering import scripted_engine
from support.serving import MODEL_ID, serving

TERMINAL = ("request_done", "request_error")
SECRET = "nobody-may-read-this"
SCHEMA = {
    "type": "object",
    "properties": {"b": {"type": "string", "maxLength": 3}, "a": {"enum": [1, 2]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
COMMON = {"model": MODEL_ID, "temperature": 0}
MESSAGES = [{"role": "user", "content": SECRET}]
REQUESTS = {
    "/v1/chat/completions": COMMON
    | {
        "messages": MESSAGES,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
    },
    "/v1/responses": COMMON
    | {
        "input": SECRET,
        "text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}},
    },
    "/v1/messages": COMMON
    | {
        "max_tokens": 200,
        "messages": MESSAGES,
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    },
}


@pytest.fixture(scope="module")
def log_path(tmp_path_factory):
    return tmp_path_factory.mktemp("log") / "requests.jsonl"


@pytest.fixture(scope="module")
def url(log_path):
    options = ServerOptions(
        port=0, model_id=MODEL_ID, api_key=SECRET, cors_origin="https://page.example"
    )
    engine = scripted_engine("free", EngineOptions(max_concurrency=2), log=JsonLinesLog(log_path))
    with engine, serving(engine, options) as address:
        yield address


def post(url: str, path: str, **changes) -> httpx.Response:
    headers = {"authorization": f"Bearer {SECRET}"}
    return httpx.post(url + path, json=REQUESTS[path] | changes, headers=headers)


def text_of(path: str, body: dict) -> str:
    if path == "/v1/chat/completions":
        return body["choices"][0]["message"]["content"]
    return (
        body["output"][0]["content"][0]["text"] if "output" in body else body["content"][0]["text"]
    )


def streamed_report(reply: httpx.Response) -> dict:
    records = [
        json.loads(line.removeprefix("data: "))
        for line in reply.text.splitlines()
        if line.startswith("data: {")
    ]
    found = [r.get("constraint") or r.get("response", {}).get("constraint") for r in records]
    (report,) = [constraint for constraint in found if constraint]
    return report


def facts(report: dict) -> dict:
    return {name: report[name] for name in ("branch", "complete", "terminated", "mask_positions")}


def test_three_protocols_give_one_answer_and_one_report(url):
    bodies = {path: post(url, path).json() for path in REQUESTS}
    texts = {text_of(path, body) for path, body in bodies.items()}
    assert len(texts) == 1
    assert list(json.loads(texts.pop())) == ["b", "a"]
    reports = [facts(body["constraint"]) for body in bodies.values()]
    assert reports[0] == reports[1] == reports[2]
    assert reports[0]["terminated"] is True
    caches = [body["constraint"]["cache"] for body in bodies.values()]
    assert caches[1:] == ["hit", "hit"]


def test_streams_carry_the_same_report_once(url):
    whole = facts(post(url, "/v1/messages").json()["constraint"])
    for path in REQUESTS:
        assert facts(streamed_report(post(url, path, stream=True))) == whole


def test_metrics_parse_and_count_what_happened(url):
    headers = {"x-api-key": SECRET}
    before = samples(httpx.get(f"{url}/metrics", headers=headers))
    post(url, "/v1/chat/completions")
    post(url, "/v1/chat/completions", temperature=9)
    after = samples(httpx.get(f"{url}/metrics", headers=headers))

    def grown(name: str, **labels: str) -> float:
        key = (name, tuple(sorted(labels.items())))
        return after[key] - before[key]

    assert grown("ninfer_requests_total", outcome="completed") == 1
    assert grown("ninfer_requests_total", outcome="rejected") == 1
    assert grown("ninfer_constraint_requests_total", outcome="terminated") == 1
    assert grown("ninfer_constraint_cache_total", result="hit") == 1
    assert grown("ninfer_constraint_mask_positions_total") > 0
    assert grown("ninfer_request_duration_seconds_count") == 1
    assert after["ninfer_engine_ready", ()] == 1
    assert after["ninfer_response_failures_total", ()] == 0


def samples(reply: httpx.Response) -> dict:
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
    }


def test_the_log_tells_what_happened_and_nothing_that_was_said(url, log_path):
    post(url, "/v1/responses")
    post(url, "/v1/responses", stream=True)
    events = written_events(log_path)
    assert SECRET not in log_path.read_text()
    started = [e["request"]["id"] for e in events if e["event"] == "request_start"]
    ended = [e["request"]["id"] for e in events if e["event"] in TERMINAL]
    assert sorted(started) == sorted(ended)
    assert len(set(started)) == len(started) > 0


def written_events(path) -> list[dict]:
    """Return the log's events once it has caught up: another thread writes it."""
    for _ in range(200):
        events = [json.loads(line) for line in path.read_text().splitlines()]
        kinds = [event["event"] for event in events]
        if kinds.count("request_start") == sum(map(kinds.count, TERMINAL)) > 0:
            break
        time.sleep(0.02)
    return events


def test_another_origin_may_ask_first_and_read_the_reply(url):
    asked = httpx.options(
        f"{url}/v1/chat/completions",
        headers={
            "origin": "https://page.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization, content-type",
        },
    )
    assert asked.status_code == 204
    assert asked.headers["access-control-allow-origin"] == "https://page.example"
    assert asked.headers["access-control-allow-headers"] == "authorization, content-type"
    reply = post(url, "/v1/chat/completions")
    assert reply.headers["access-control-allow-origin"] == "https://page.example"
