"""State changes of a stream on their way into the log as `stream.state` events."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from streamer.clock import format_utc, wall_ns
from streamer.errors import CapacityError
from streamer.events.schema import StreamStateBody, retained_body
from streamer.outage import Outage
from streamer.records import SourceState
from streamer.sessions.slot import call_soon
from streamer.store.protocol import Lease, Store

__all__ = ["Announcer", "state_body"]

_LOG = logging.getLogger(__name__)
_SAID = Outage(_LOG, lost="state not said yet", back="states said again")
"""Of all sessions of this process."""
_PENDING_STATES = 64
# About the clock only: the stream stays in the state that it is in.
_IN_PASSING = ("clock_skewed", "clock_ok")


def state_body(stream: str, state: SourceState, *, time_ns: int) -> bytes:
    """`stream.state` as the log keeps it: JSON without ``id`` and ``seq``."""
    event = StreamStateBody(
        stream=stream,
        time=format_utc(time_ns),
        state=state.state,
        reason=state.reason,
        detail=state.detail,
        retry_in_s=state.retry_in_s,
        have=state.have,
        need=state.need,
    )
    return retained_body(event)


class Announcer:
    """Takes states from any thread and appends them in order.

    The queue drops its oldest state beyond a bound: with a dead store a flapping camera must not
    fill the memory. A state equal to the one before it is not said again, and a word about the
    clock becomes no state.
    """

    def __init__(self, store: Store, *, lease: Lease) -> None:
        self.state = SourceState(state="starting", reason="opening")
        """Newest state taken, said or not."""
        self.news = asyncio.Event()
        """Set at each new state; whoever shows it clears it."""
        self.dropped = 0
        """States that fell out of the queue unsaid."""
        self.reconnects = 0
        """Times the source had to be connected again."""
        self._store = store
        self._lease = lease
        self._loop = asyncio.get_running_loop()
        self._pending: deque[SourceState] = deque()
        self._last: SourceState | None = None
        self._changed = asyncio.Event()

    def report_from_thread(self, state: SourceState) -> None:
        """`streamer.sources.source.Report` for the decode thread."""
        call_soon(self._loop, lambda: self.report(state))

    def report(self, state: SourceState) -> None:
        if state.reason not in _IN_PASSING:
            if state == self._last:
                return
            self.reconnects += state.state == "reconnecting" != self.state.state
            self._last = self.state = state
        self.news.set()
        if len(self._pending) == _PENDING_STATES:
            self._pending.popleft()
            self.dropped += 1
        self._pending.append(state)
        self._changed.set()

    async def run(self) -> None:
        """Append states as they come, for ever. Cancellation may leave states unsaid.

        Raises:
            LeaseLost: the stream is no longer ours.
        """
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self.flush()
                _SAID.went_well()
            except CapacityError as error:
                _SAID.failed(error.message)
                await asyncio.sleep(error.retry_after_s)
                self._changed.set()

    async def flush(self) -> None:
        """Append what waits. Cancellation may leave states unsaid.

        Raises:
            LeaseLost: the stream is no longer ours.
            CapacityError: the store is out of reach; what was not said waits on.
        """
        while self._pending:
            state = self._pending.popleft()
            body = state_body(self._lease.stream, state, time_ns=wall_ns())
            try:
                await self._store.append(self._lease.stream, lease=self._lease.token, body=body)
            except CapacityError:
                self._pending.appendleft(state)
                raise
