"""A tiny target with its frontend, and a folder for it and its drafters, one for each module."""

from __future__ import annotations

from pathlib import Path

import pytest

from ninfer.qwen_frontend.frontend import Frontend
from ninfer.runtime.loading import LoadedModel
from support.program_runs import tiny_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("model")


@pytest.fixture(scope="module")
def model(folder: Path) -> LoadedModel:
    return tiny_model(folder / "target")


@pytest.fixture(scope="module")
def frontend(model: LoadedModel) -> Frontend:
    return Frontend(model.facts)
