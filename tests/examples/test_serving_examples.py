"""The client examples of docs/serving.md run against a server, addresses aside."""

import re
from pathlib import Path

import pytest

from ninfer.gateway.options import ServerOptions
from support.answering import scripted_engine
from support.serving import serving

TEXT = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def url():
    with scripted_engine("free") as engine, serving(engine, ServerOptions(port=0)) as address:
        yield address


@pytest.mark.parametrize("number", range(2))
def test_a_client_example_prints_its_answer(url, capsys, number):
    names = {}
    try:
        exec(EXAMPLES[number].replace("http://127.0.0.1:8000", url), names)
    finally:
        names["client"].close()
    said = capsys.readouterr().out
    if number == 0:
        assert said.split()[0] in ("yes", "no")
        assert "'terminated': True" in said
    else:
        assert said.startswith('{"city":"')
