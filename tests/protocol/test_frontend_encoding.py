"""A long prompt takes its own thread's time and nobody else's."""

import threading
import time

from ninfer.contract import TextPrompt
from support.templates import small_frontend


def test_other_threads_run_while_a_long_prompt_is_encoded():
    frontend = small_frontend()
    prompt = TextPrompt("hello world " * 50_000)
    span: list[float] = []

    def prepare() -> None:
        span.append(time.perf_counter())
        frontend.prepare(prompt)
        span.append(time.perf_counter())

    thread = threading.Thread(target=prepare)
    thread.start()
    looks = []
    while thread.is_alive():
        looks.append(time.perf_counter())
        time.sleep(0.001)
    thread.join()
    inside = [look for look in looks if span[0] < look < span[1]]
    assert len(inside) > 20
