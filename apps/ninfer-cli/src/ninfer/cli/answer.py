"""One submitted request on its way to the terminal: bytes to stdout, the report to stderr."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, BinaryIO, TextIO

from ninfer.cli.failure import STATUS_INTERRUPTED
from ninfer.cli.interrupt import cancel_on_interrupt
from ninfer.cli.report import report_lines, result_record
from ninfer.contract import Channel, GenerationResult, OutputDelta

if TYPE_CHECKING:
    from ninfer.runtime import GenerationHandle


def publish(
    handle: GenerationHandle, *, as_json: bool = False, with_token_ids: bool = False
) -> int:
    """Print an answer as it is generated and return the exit status.

    Effects: content goes to stdout byte for byte, flushed per delta; reasoning and the report go to
             stderr. With ``as_json`` stdout holds one JSON object instead.
    Raises:  NInferError — the request failed; what was printed stays. BrokenPipeError.
    """
    printer = _Printer(None if as_json else sys.stdout.buffer, sys.stderr)
    with handle, cancel_on_interrupt(handle.cancel) as interruption:
        try:
            for event in handle:
                if isinstance(event, OutputDelta):
                    printer.write(event.channel, event.text)
            result = handle.wait()
        finally:
            printer.end()
    _report(result, as_json=as_json, with_token_ids=with_token_ids)
    return STATUS_INTERRUPTED if interruption.requested else 0


class _Printer:
    """Writes deltas; remembers whether the terminal stands at the start of a line."""

    def __init__(self, content: BinaryIO | None, side: TextIO) -> None:
        self._content = content
        self._side = side
        self._open_lines: set[Channel] = set()

    def write(self, channel: Channel, text: str) -> None:
        """Print one delta."""
        if channel is Channel.REASONING:
            self._side.write(text)
            self._side.flush()
        elif self._content is not None:
            self._content.write(text.encode("utf-8"))
            self._content.flush()
        else:
            return
        if text.endswith("\n"):
            self._open_lines.discard(channel)
        elif text:
            self._open_lines.add(channel)

    def end(self) -> None:
        """Put the report on a line of its own where stdout and stderr end up in one place."""
        if self._open_lines:
            self._side.write("\n")


def _report(result: GenerationResult, *, as_json: bool, with_token_ids: bool) -> None:
    if as_json:
        print_json(result_record(result))
        return
    for line in report_lines(result, with_token_ids=with_token_ids):
        sys.stderr.write(line + "\n")


def print_json(record: object) -> None:
    """Print one JSON object as a line of UTF-8 on stdout."""
    print_line(json.dumps(record, ensure_ascii=False))


def print_line(text: str) -> None:
    """Print one line of UTF-8 on stdout, whatever the terminal's own encoding.

    Effects: bytes of file names that are not UTF-8 are escaped, as JSON escapes lone surrogates.
    """
    sys.stdout.buffer.write(f"{text}\n".encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()
