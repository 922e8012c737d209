"""The server's own flags: refused in one line before anything is opened, whatever is wrong."""

import os

import pytest

from ninfer.gateway.main import run_gateway


class Opening:
    """Notes that it was asked, and fails the way it is told to."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure
        self.is_asked = False

    def __call__(self, model, options, **_):
        self.is_asked = True
        raise self.failure


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--port", "70000"], "--port: 70000 is not in 0..65535"),
        (["--port", "-1"], "--port: -1 is not in 0..65535"),
        (["--port", "x"], "--port: invalid int value: 'x'"),
        (["--spec", "x"], "--spec: invalid choice: 'x'"),
        (["--frobnicate"], "unrecognized arguments: --frobnicate"),
        (["extra"], "unrecognized arguments: extra"),
        (["--port"], "--port: expected one argument"),
        (["--default-max-tokens", "-5"], "--default-max-tokens: -5 is less than 1"),
        (["--threads", "1025"], "--threads: 1025 is over 1024"),
        (["--max-body-bytes", "0"], "--max-body-bytes: 0 is less than 1"),
        (["--response-store-records", "-1"], "--response-store-records: -1 is less than 0"),
        (["--response-store-bytes", "-1"], "--response-store-bytes: -1 is less than 0"),
        (["--api-key", ""], "--api-key: an empty text"),
        (["--model-id", ""], "--model-id: an empty text"),
        (["--model-id", os.fsdecode(b"a\xff")], "--model-id: not UTF-8"),
        (["--cors-origin", ""], "--cors-origin: an empty text"),
        (["--cors-origin", "http://a\r\nx: y"], "--cors-origin: "),
    ],
)
def test_a_flag_that_cannot_be_used_is_refused_in_one_line(flags, line, capsys):
    opening = Opening(AssertionError("it was opened"))
    assert run_gateway(flags, opening) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {line}")
    assert error.count("\n") == 1
    assert not opening.is_asked


def test_a_device_that_cannot_be_reached_is_named_by_its_flag(capsys):
    refusal = RuntimeError("no such device\nand a long story about it")
    assert run_gateway(["--device", "nonsense"], Opening(refusal)) == 2
    assert capsys.readouterr().err == "error: --device nonsense: no such device\n"
    with pytest.raises(RuntimeError):
        run_gateway([], Opening(refusal))
