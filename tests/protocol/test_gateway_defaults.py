"""What a server was started with holds where a request does not say, in every protocol."""

import json

import httpx
import pytest

from ninfer.contract import SamplingOverrides
from ninfer.gateway.answer_flags import answer_defaults
from ninfer.gateway.defaults import AnswerDefaults
from ninfer.gateway.flags import parser
from ninfer.gateway.main import run_gateway
from ninfer.gateway.options import ServerOptions
from ninfer.runtime import JsonLinesLog
from support.answering import THINKING_TEMPLATE, opening, scripted_engine
from support.serving import MODEL_ID, serving

ASKED = [{"role": "user", "content": "x"}]
PATHS = {
    "/v1/chat/completions": {"messages": ASKED, "max_tokens": 400},
    "/v1/responses": {"input": "x", "max_output_tokens": 400},
    "/v1/messages": {"messages": ASKED, "max_tokens": 400},
}
COUNTS = {
    "/v1/responses/input_tokens": {"input": "x"},
    "/v1/messages/count_tokens": {"messages": ASKED},
}
THOUGHTS = "hmm\n</think>\n\nIt is so."
TEMPLATE = "{% if preserve_thinking %}KEPT{% endif %}" + THINKING_TEMPLATE


@pytest.fixture(params=list(PATHS))
def path(request):
    return request.param


def post(url: str, path: str, **fields) -> dict:
    body = {"model": MODEL_ID} | PATHS.get(path, COUNTS.get(path, {})) | fields
    reply = httpx.post(url + path, json=body, timeout=20)
    assert reply.status_code == 200, reply.text
    return reply.json()


def server(**answers) -> ServerOptions:
    return ServerOptions(port=0, model_id=MODEL_ID, answers=AnswerDefaults(**answers))


def thought(path: str, reply: dict) -> str:
    """Return what the model thought in one reply."""
    if path == "/v1/chat/completions":
        return reply["choices"][0]["message"].get("reasoning_content", "")
    if path == "/v1/responses":
        items = [item for item in reply["output"] if item["type"] == "reasoning"]
        return "".join(part["text"] for item in items for part in item["content"])
    return "".join(block.get("thinking", "") for block in reply["content"])


def test_sampling_is_the_servers_unless_the_request_says_otherwise(tmp_path, path):
    log = tmp_path / "log.jsonl"
    sampling = SamplingOverrides(temperature=1.5, top_p=0.5, top_k=7, min_p=0.1, seed=11)
    engine = scripted_engine("yes", log=JsonLinesLog(log))
    with engine, serving(engine, server(sampling=sampling, output_tokens=3)) as url:
        post(url, path)
        post(url, path, temperature=0.0, seed=5, top_k=3)
    records = [json.loads(line) for line in log.read_text().splitlines()]
    first, second = (r["request"]["sampling"] for r in records if r["event"] == "request_start")
    served = {"temperature": 1.5, "top_p": 0.5, "top_k": 7, "min_p": 0.1, "seed": 11}
    assert first.items() >= served.items()
    asked = {"temperature": 0.0, "seed": 5, "top_k": 3}
    assert second.items() >= (served | asked).items()


def test_the_length_is_the_servers_unless_the_request_says_otherwise(path):
    limit = next(name for name in PATHS[path] if name.startswith("max_"))
    with scripted_engine("abcdefgh") as engine:
        with serving(engine, server(output_tokens=3)) as url:
            for asked, tokens in ((None, 3), (5, 5)):
                usage = post(url, path, **{limit: asked}, temperature=0)["usage"]
                assert usage.get("completion_tokens", usage.get("output_tokens")) == tokens


THINKS = {
    "/v1/chat/completions": [
        {"enable_thinking": True},
        {"reasoning_effort": "high"},
        {"chat_template_kwargs": {"enable_thinking": True}},
    ],
    "/v1/responses": [
        {"enable_thinking": True},
        {"reasoning": {"effort": "high"}},
        {"chat_template_kwargs": {"enable_thinking": True}},
    ],
    "/v1/messages": [
        {"thinking": {"type": "adaptive"}},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1500},
        {"output_config": {"effort": "high"}},
    ],
}


def test_a_server_without_thinking_still_thinks_where_it_is_asked_to(path):
    with scripted_engine(THOUGHTS, template=THINKING_TEMPLATE) as engine:
        with serving(engine, server(enable_thinking=False)) as url:
            assert thought(path, post(url, path, temperature=0)) == ""
            for fields in THINKS[path]:
                assert thought(path, post(url, path, temperature=0, **fields)) == "hmm"


def test_the_thinking_budget_is_the_servers_unless_the_request_says_otherwise(path):
    with scripted_engine(THOUGHTS, template=THINKING_TEMPLATE) as engine:
        with serving(engine, server(thinking_budget=2)) as url:
            closed = thought(path, post(url, path, temperature=0))
            assert closed.startswith("hm\n\n Considering the limited time")
            if path != "/v1/messages":
                assert thought(path, post(url, path, temperature=0, thinking_budget=50)) == "hmm"


@pytest.mark.parametrize("counting", list(COUNTS))
def test_prompts_are_counted_as_they_are_answered(counting):
    path = counting.rpartition("/")[0]
    tokens = []
    for answers in ({}, {"preserve_thinking": True}, {"enable_thinking": False}):
        with scripted_engine(THOUGHTS, template=TEMPLATE) as engine:
            with serving(engine, server(**answers)) as url:
                counted = post(url, counting)["input_tokens"]
                usage = post(url, path)["usage"]
        assert counted == usage["input_tokens"] + usage.get("cache_read_input_tokens", 0)
        tokens.append(counted)
    assert len(set(tokens)) == 3


FLAGS = {
    "": {},
    "--greedy --seed 3": {"sampling": SamplingOverrides(temperature=0.0, seed=3)},
    "--temperature 0.5 --top-p 0.9 --top-k 0 --min-p 0.2": {
        "sampling": SamplingOverrides(temperature=0.5, top_p=0.9, top_k=0, min_p=0.2)
    },
    "--presence-penalty -1 --frequency-penalty 2": {
        "sampling": SamplingOverrides(presence_penalty=-1.0, frequency_penalty=2.0)
    },
    "--no-thinking --preserve-thinking": {"enable_thinking": False, "preserve_thinking": True},
    "--default-thinking-budget 9 --default-max-tokens 7": {
        "thinking_budget": 9,
        "output_tokens": 7,
    },
}


@pytest.mark.parametrize("flags", list(FLAGS))
def test_flags_become_defaults(flags):
    assert answer_defaults(parser().parse_args(flags.split())) == AnswerDefaults(**FLAGS[flags])


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("--temperature 3", "--temperature: 3.0 is not in [0, 2]"),
        ("--top-k 21", "--top-k: 21 is not in 0..20"),
        ("--seed -1", "--seed: not an unsigned 64-bit integer"),
        ("--greedy --temperature 0", "--greedy: "),
        ("--default-thinking-budget 0", "--default-thinking-budget: 0 is less than 1"),
        ("--default-thinking-budget 5", "--default-thinking-budget: the model does not think"),
    ],
)
def test_a_default_that_no_request_could_have_is_refused_at_the_start(flags, line, capsys):
    assert run_gateway(flags.split(), opening("x")) == 2
    assert capsys.readouterr().err.startswith(f"error: {line}")
