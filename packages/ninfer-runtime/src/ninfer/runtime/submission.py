"""From a prepared prompt and options to a request in the queue, on the caller's thread."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ninfer.contract import (
    ProgramShape,
    QueueTimeout,
    RequestOptions,
)
from ninfer.runtime.clocks import RequestClock
from ninfer.runtime.frontend import Frontend
from ninfer.runtime.handle import GenerationHandle
from ninfer.runtime.inbox import Inbox
from ninfer.runtime.limits import output_limit_for, resolve_sampling
from ninfer.runtime.opening import first_mask
from ninfer.runtime.outlet import Outlet
from ninfer.runtime.outstanding import Slot
from ninfer.runtime.prepared import Cancellation, Prepared
from ninfer.runtime.request import EngineRequest


class Submitter:
    """Opens sessions and queues requests; several threads may be in it at once."""

    def __init__(
        self, frontend: Frontend, shape: ProgramShape, inbox: Inbox, now: Callable[[], float]
    ) -> None:
        self._frontend = frontend
        self._shape = shape
        self._inbox = inbox
        self._now = now
        self._ids = itertools.count(1)

    def submit(
        self,
        prepared: Prepared,
        options: RequestOptions,
        deadline: float,
        cancellation: Cancellation,
        slot: Slot,
    ) -> GenerationHandle:
        """Queue a request under a reserved slot; the caller gives the slot back on failure.

        Effects: compiles and computes the first mask without any lock; deadline, cancellation and
                 the engine's state are looked at again before the queue.
        Raises:  RequestError, QueueTimeout, EngineUnavailable, RequestCancelled.
        """
        submitted = self._now()
        limit, reason = output_limit_for(prepared, options, self._shape)
        sampling = resolve_sampling(prepared, options)
        cancellation.require_wanted()
        session = self._frontend.open_session(
            prepared.prompt, options, output_limit=limit, limit_reason=reason
        )
        mask_started = self._now()
        mask = first_mask(session, options, self._shape.token_domain) if limit else None
        queued = self._now()
        cancellation.require_wanted()
        if queued >= deadline:
            raise QueueTimeout("the pending deadline passed while the request was prepared")
        request = EngineRequest(
            request_id=next(self._ids),
            prepared=prepared,
            options=options,
            session=session,
            sampling=sampling,
            output_limit=limit,
            deadline=deadline,
            outlet=Outlet(slot, cancellation, self._inbox.wake),
            clock=RequestClock(
                prepared.started, prepared.seconds, queued - submitted, submitted, queued
            ),
            initial_mask=mask,
        )
        if mask is not None:
            request.masks.positions += 1
            request.masks.seconds += queued - mask_started
        handle = GenerationHandle(
            request.request_id, prepared.prompt.report, sampling, request.outlet
        )
        self._inbox.put(request)
        return handle
