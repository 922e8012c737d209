"""The package's README example runs as it stands."""

import re
from pathlib import Path

import ninfer.contract
from ninfer.contract import TextPrompt
from ninfer.qwen_frontend import Frontend
from support.templates import small_facts

README = Path(__file__).parents[2] / "packages" / "ninfer-qwen-frontend" / "README.md"


def test_the_readme_example_publishes_its_answer():
    (source,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    facts = small_facts()
    tokens = Frontend(facts).prepare(TextPrompt("why\n</think>\n\nyes")).token_ids
    names = {**vars(ninfer.contract), "Frontend": Frontend, "facts": facts, "tokens": tokens}
    exec(source, names)
    assert [delta.text for delta in names["deltas"]] == ["why", "yes"]
    assert names["preview"].accepted_tokens == len(tokens)
