"""Responses kept in this process, so that a later request can go on from one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ninfer.gateway.failure import WireError
from ninfer.gateway.responses.wire import InputItem


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A finished response and the conversation that led to it, earlier turns included."""

    response: dict[str, Any]
    input_items: tuple[InputItem, ...]

    def conversation(self) -> tuple[InputItem, ...]:
        """Return the conversation including the answer."""
        answer = msgspec.convert(self.response["output"], list[InputItem])
        return (*self.input_items, *answer)


class ResponseStore:
    """Least recently used records go first when a limit is reached.

    Units: ``byte_limit`` counts the JSON bytes of what is kept. Only the event loop calls it.
    """

    def __init__(self, record_limit: int, byte_limit: int) -> None:
        self._record_limit = record_limit
        self._byte_limit = byte_limit
        self._records: OrderedDict[str, tuple[StoredResponse, int]] = OrderedDict()
        self._held_bytes = 0

    def require_room(self, items: Sequence[InputItem]) -> None:
        """Check that a conversation can be kept at all.

        Raises: WireError — it is larger than the whole store.
        """
        if len(msgspec.json.encode(items)) > self._byte_limit:
            fact = f"the conversation is larger than the store's {self._byte_limit} bytes"
            raise WireError(fact, param="store", code="response_store_capacity_exceeded")

    def put(self, identity: str, record: StoredResponse) -> None:
        """Keep a record, and let go of the oldest until it fits."""
        size = len(msgspec.json.encode((record.response, record.input_items)))
        self._records[identity] = (record, size)
        self._held_bytes += size
        while len(self._records) > self._record_limit or self._held_bytes > self._byte_limit:
            _, (_, freed) = self._records.popitem(last=False)
            self._held_bytes -= freed

    def get(self, identity: str, field: str | None = None) -> StoredResponse:
        """Return a record.

        Raises: WireError — there is none; ``field`` is the request field that named it.
        """
        if identity not in self._records:
            fact = f"no response {identity!r} is stored"
            status = 400 if field else 404
            raise WireError(fact, param=field, code="response_not_found", status=status)
        self._records.move_to_end(identity)
        return self._records[identity][0]

    def delete(self, identity: str) -> None:
        """Let go of a record.

        Raises: WireError — there is none.
        """
        self.get(identity)
        _, size = self._records.pop(identity)
        self._held_bytes -= size
