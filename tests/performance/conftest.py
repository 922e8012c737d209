"""Benches that take too long to run once untimed ask for ``only_when_timed``."""

import pytest


@pytest.fixture
def only_when_timed(request: pytest.FixtureRequest) -> None:
    """Skip before the benchmark fixture exists: one that nobody uses is a warning, so an error."""
    enabled = request.config.getoption("benchmark_enable")
    if request.config.getoption("benchmark_disable") and not enabled:
        pytest.skip("is timed with --benchmark-enable")
