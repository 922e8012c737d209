"""The cycle collector rests during builds, and comes back as it was."""

import gc
import threading

import pytest

from ninfer.contract import InvalidRegex, OutputConstraint, TextOffset
from ninfer.text import ConstraintCompiler
from ninfer.text.collection import collection_held
from support.vocabularies import byte_vocabulary


@pytest.fixture(autouse=True)
def enabled():
    gc.enable()
    yield
    gc.enable()


def test_it_comes_back_after_the_last_holder():
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with collection_held():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    with collection_held():
        thread.start()
        assert inside.wait(10)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    with collection_held():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_builds_hold_it_and_refusals_let_go():
    compiler = ConstraintCompiler(byte_vocabulary())
    seen = []

    def build():
        seen.append(gc.isenabled())
        raise InvalidRegex("refused in a test", location=TextOffset(0))

    with pytest.raises(InvalidRegex):
        compiler.compile_language("a key", build)
    assert seen == [False]
    assert gc.isenabled()
    compiler.compile(OutputConstraint.regex("a+"))
    assert gc.isenabled()
