"""One feed at work: the tasks around its session, whatever carries the messages.

A reader (without one a server does not learn that its client left), a writer, a follower of each
stream's log, and a watchman. Whatever ends one of the first two, or fails in any, ends the feed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from typing import Protocol

from streamer.clock import monotonic_ns
from streamer.errors import (
    CapacityError,
    Forbidden,
    NotFound,
    ProtocolViolation,
    StreamerError,
    SubscriberTooSlow,
)
from streamer.events.compose import Message
from streamer.events.session import FeedSession
from streamer.gateway.auth import Gate, Grant, NotAuthenticated
from streamer.gateway.backend import Backend
from streamer.gateway.exhibition import Exhibition
from streamer.gateway.feed_query import FeedQuery
from streamer.gateway.hub import Hub
from streamer.gateway.reachable import check_horizons
from streamer.gateway.tail import Tail

__all__ = ["FeedRun", "Gone", "Line", "opened_session"]

log = logging.getLogger(__name__)

_RETRY_S = 1.0
_NAP_S = 1.0
_GOODBYE_S = 2.0
_LIFE_SPREAD = 0.1


class Gone(Exception):
    """The subscriber left."""


class Line(Protocol):
    """What carries messages to one subscriber."""

    async def send(self, message: Message) -> None:
        """Returns when there is room for the next one. Raises `Gone`."""

    async def receive(self) -> str | bytes:
        """The next message of the client. Raises `Gone`."""


async def opened_session(
    query: FeedQuery, *, backend: Backend, hub: Hub, can_change: bool = False
) -> FeedSession:
    """A session at the logs' ends or at the cursors. Safe to cancel.

    Raises:
        NotFound: no such stream.
        ProtocolViolation: a horizon that none of the streams foretells.
        CapacityError: the store does not answer.
    """
    logs = {}
    for stream in query.streams:
        with hub.tail(stream) as tail:
            logs[stream] = await tail.now()
    await check_horizons(backend.store, query.streams, query.options)
    session = FeedSession(
        config=backend.feed, renderer=hub.renderer, options=query.options, can_change=can_change
    )
    session.open(logs, after=query.after, strict=query.strict, now_ns=monotonic_ns())
    return session


class FeedRun:
    """The tasks of one feed.

    Args:
        session: opened.
        line: to the subscriber.
        backend: for its patience and its end.
        hub: has the logs' tails.
        gate: knows whether the grant still holds.
        grant: under which the feed was opened.
        is_single: the loss of the stream ends the feed.
    """

    def __init__(
        self,
        session: FeedSession,
        line: Line,
        *,
        backend: Backend,
        hub: Hub,
        gate: Gate,
        grant: Grant,
        is_single: bool = True,
    ) -> None:
        self._session = session
        self._line = line
        self._backend = backend
        self._hub = hub
        self._gate = gate
        self._grant = grant
        self._is_single = is_single
        life_s = backend.feed.max_life_s * (1 - _LIFE_SPREAD * random.random())
        self._end_ns = monotonic_ns() + int(life_s * 1e9)
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._horizons_s = session.options.horizons_s
        self._followers: dict[str, asyncio.Task[None]] = {}
        self._sending: asyncio.Timeout | None = None
        self._exhibition = Exhibition(session, hub=hub, notice=self._notice)

    async def run(self) -> None:
        """Until the session closed. Close after.

        Raises:
            Gone: the subscriber left.
            StreamerError: the feed cannot go on; the class has the close code.
        """
        try:
            async with asyncio.TaskGroup() as group:
                self._follow_chosen(group)
                ending = {
                    group.create_task(self._listen(group)),
                    group.create_task(self._write()),
                }
                others = {
                    group.create_task(self._watch()),
                    group.create_task(self._drain()),
                    group.create_task(self._exhibition.run()),
                }
                await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
                for task in ending | others | set(self._followers.values()):
                    task.cancel()
        except ExceptionGroup as group_error:
            known, bugs = group_error.split((StreamerError, Gone))
            if bugs is not None or known is None:
                raise
            raise known.exceptions[0] from None

    async def _listen(self, group: asyncio.TaskGroup) -> None:
        while True:
            data = await self._line.receive()
            if isinstance(data, str):
                self._session.receive_text(data, now_ns=monotonic_ns())
            else:
                self._session.receive_binary()
            self._follow_chosen(group)
            self._room.set()
            await self._tell_unreachable()
            self._notice()

    async def _tell_unreachable(self) -> None:
        """Once, when the option changes. It holds: a stream may be changed to look so far."""
        horizons_s, streams = self._session.options.horizons_s, self._session.streams
        if horizons_s == self._horizons_s:
            return
        self._horizons_s = horizons_s
        try:
            await check_horizons(self._backend.store, streams, self._session.options)
        except ProtocolViolation as error:
            self._session.warn(error)
        except CapacityError:
            log.debug("horizons not checked", exc_info=True)

    def _follow_chosen(self, group: asyncio.TaskGroup) -> None:
        """One follower for each stream that the client wants, and none for others."""
        chosen = self._session.followed
        for stream in self._followers.keys() - chosen:
            self._followers.pop(stream).cancel()
        for stream in chosen - self._followers.keys():
            self._followers[stream] = group.create_task(self._follow(stream, group))

    async def _follow(self, stream: str, group: asyncio.TaskGroup) -> None:
        try:
            with self._hub.tail(stream) as tail:
                if stream not in self._session.streams:
                    self._grant.check_stream(stream)
                    self._session.join(stream, await tail.now())
                    self._has_chosen(group)
                    await self._tell_unreachable()
                    self._notice()
                await self._read(stream, tail)
        except (NotFound, Forbidden) as error:
            if self._is_single:
                raise
            self._session.lose(stream, error)
            self._followers.pop(stream, None)
            self._has_chosen(group)

    def _has_chosen(self, group: asyncio.TaskGroup) -> None:
        """Perhaps other streams are carried now, and the followers of all are to look."""
        self._follow_chosen(group)
        self._room.set()
        self._notice()

    async def _read(self, stream: str, tail: Tail) -> None:
        while self._session.close is None:
            read = self._session.wanted(stream)
            if read is None:
                await _until(self._room, timeout_s=_NAP_S)
                continue
            found = await tail.after(read)
            if found is not None:
                self._session.receive_log(read, found, now_ns=monotonic_ns())
                self._exhibition.passed(stream, found.entries)
                self._notice()

    async def _write(self) -> None:
        while True:
            message = self._session.next_message(now_ns=monotonic_ns())
            if message is not None:
                if message.type == "gap":
                    self._hub.note_gap(message)
                await self._send(message)
                self._exhibition.sent(message)
                self._room.set()
            elif self._session.close is not None:
                return
            else:
                left_s = self._session.silence_left_s(now_ns=monotonic_ns())
                await _until(self._changed, timeout_s=left_s)

    async def _watch(self) -> None:
        """Looks after slowness, figures, the token and the feed's age."""
        while True:
            left_s = (self._end_ns - monotonic_ns()) / 1e9
            await asyncio.sleep(min(_NAP_S, max(0.0, left_s)))
            if not self._gate.is_valid(self._grant):
                raise NotAuthenticated("The token of this feed was taken back.")
            self._session.tick(now_ns=monotonic_ns())
            if self._session.options.stats:
                await self._tell_stats()
            if left_s <= _NAP_S:
                self._end("This connection has reached its age; connect again.")
                return
            self._notice()

    async def _tell_stats(self) -> None:
        for stream in self._session.streams:
            with contextlib.suppress(NotFound):  # its follower tells that
                stats = await self._hub.stats(stream)
                if stats is not None:
                    self._session.tell(stats)

    async def _drain(self) -> None:
        await self._backend.draining.wait()
        self._end("This gateway is shutting down.")

    def _end(self, reason: str) -> None:
        self._session.drain(reason=reason, retry_after_s=_RETRY_S)
        self._notice()

    async def _send(self, message: Message) -> None:
        try:
            async with asyncio.timeout(self._backend.feed.slow_grace_s) as self._sending:
                await self._line.send(message)
        except TimeoutError:
            raise SubscriberTooSlow("The subscriber did not read for too long.") from None
        finally:
            self._sending = None

    def _notice(self) -> None:
        """The session may have something to say; one that gave up on its subscriber must not wait
        for a send that will never end."""
        self._changed.set()
        close = self._session.close
        # One that has expired already cannot be changed any more; its send is on its way out.
        if close is not None and self._sending is not None and not self._sending.expired():
            is_slow = isinstance(close.error, SubscriberTooSlow)
            left_s = 0.0 if is_slow else _GOODBYE_S
            deadline = asyncio.get_running_loop().time() + left_s
            self._sending.reschedule(min(self._sending.when() or deadline, deadline))


async def _until(event: asyncio.Event, *, timeout_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    event.clear()
