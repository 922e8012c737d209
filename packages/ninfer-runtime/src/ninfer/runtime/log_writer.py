"""Writes the request log as JSON lines, on a thread of its own."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from ninfer.contract import GenerationResult, NInferError, SchedulingEvent
from ninfer.runtime.log_records import (
    Record,
    done_record,
    error_record,
    rejected_record,
    scheduling_record,
    start_record,
)
from ninfer.runtime.request import EngineRequest
from ninfer.runtime.request_log import Throughput

SCHEMA_VERSION = 25
QUEUE_RECORDS = 10_000
"""Records that may wait for a slow disk; more are dropped and counted, never waited for."""


class JsonLinesLog:
    """Implements RequestLog over a file.

    Effects: callers hand records over without waiting; ``close`` writes what is left. Records that
             found the queue full or could not be written, such as on a full disk, are counted in
             the closing ``log_dropped`` record; later records are tried again.
    Raises:  OSError — the file cannot be opened for appending.
    """

    def __init__(self, path: str | Path, *, wall: Callable[[], float] = time.time) -> None:
        # Names of files may hold what is no Unicode text.
        self._file: IO[str] = Path(path).open("a", encoding="utf-8", errors="backslashreplace")
        self._wall = wall
        self._dropped = 0
        self._unwritten = 0
        self._records: queue.Queue[Record | None] = queue.Queue(QUEUE_RECORDS)
        self._thread = threading.Thread(target=self._write, name="ninfer-request-log", daemon=True)
        self._thread.start()

    def server_start(self, facts: Record) -> None:
        """Note what is served; the caller leaves out secrets."""
        self._put({"event": "server_start", **facts})

    def start(self, request: EngineRequest) -> None:
        """Note that a request entered the queue."""
        self._put(start_record(request))

    def rejected(self, error: NInferError) -> None:
        """Note a request that never reached the queue."""
        self._put(rejected_record(error))

    def scheduling(self, request: EngineRequest, event: SchedulingEvent) -> None:
        """Note a step of pause and resume."""
        self._put(scheduling_record(request, event))

    def done(self, request: EngineRequest, result: GenerationResult) -> None:
        """Note the end of a request with a result."""
        self._put(done_record(request, result))

    def error(self, request: EngineRequest, error: NInferError) -> None:
        """Note the end of a request with an error."""
        self._put(error_record(request, error))

    def throughput(self, period: Throughput) -> None:
        """Note what a period of work achieved."""
        self._put({"event": "throughput", **period._asdict()})

    def close(self) -> None:
        """Write what is left and close the file; later records are dropped."""
        if not self._thread.is_alive():
            return
        if lost := self._dropped + self._unwritten:
            self._records.put(self._stamped({"event": "log_dropped", "records": lost}))
        self._records.put(None)
        self._thread.join()

    def _put(self, record: Record) -> None:
        try:
            self._records.put_nowait(self._stamped(record))
        except queue.Full:
            self._dropped += 1

    def _stamped(self, record: Record) -> Record:
        return {"schema": SCHEMA_VERSION, "time": self._wall(), **record}

    def _write(self) -> None:
        while (record := self._records.get()) is not None:
            try:
                self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
                if self._records.empty():
                    self._file.flush()
            except OSError:
                self._unwritten += 1
        # What a full disk still refuses is lost; the engine closes all the same.
        with suppress(OSError):
            self._file.close()
