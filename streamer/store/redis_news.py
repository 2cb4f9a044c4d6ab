"""News from Redis for everybody in this process who waits, over one connection.

A message only says *look again*: what counts is read from the store. So a message that was lost,
or a connection that broke, costs time and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

from redis.asyncio.client import PubSub
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import RedisError

from streamer.backoff import Backoff, delays
from streamer.clock import monotonic_ns
from streamer.errors import StreamerError
from streamer.outage import Outage
from streamer.store.redis_connection import RedisConnection
from streamer.store.signals import Signals

__all__ = ["RedisNews"]

_LOG = logging.getLogger(__name__)
_RETRY = Backoff(first_s=0.1, cap_s=2.0, jitter=0.5)
_PING_S = 2.0
_SILENT_S = 3 * _PING_S
_IDLE_S = 30.0
"""A channel stays subscribed this long after its last follower, since most come back."""


class RedisNews:
    """Listens while anybody waits, and goes on listening until it is closed.

    Args:
        connection: to the server whose channels these are.
        home: a channel that is always listened to.
        greet: called whenever the connection is new, so that the server learns what this process
            saw even if it asks for nothing just now.
    """

    def __init__(
        self,
        connection: RedisConnection,
        *,
        home: str,
        greet: Callable[[], Awaitable[object]],
    ) -> None:
        self._connection = connection
        self._home = home
        self._greet = greet
        self._followers: Counter[str] = Counter()
        self._idle_ns: dict[str, int] = {}
        """Channels without followers, and since when."""
        self._joined: dict[str, int] = {}
        """Channels that the server confirmed -> messages heard there."""
        self._losses = 0
        self._outage = Outage(_LOG, lost="store news lost", back="store news again")
        self._signals = Signals()
        self._changed = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self._is_closed = False

    async def wait(
        self,
        channel: str,
        *,
        look: Callable[[], Awaitable[int]],
        is_news: Callable[[int], bool],
        timeout_s: float,
    ) -> int:
        """Look now and at each message until there is news, or for the last time at the timeout.

        Safe to cancel. Raises what `look` raises.
        """
        end_ns = monotonic_ns() + int(timeout_s * 1e9)
        with self._following(channel):
            while True:
                left_s = (end_ns - monotonic_ns()) / 1e9
                if left_s > 0:
                    await self._join(channel, timeout_s=min(left_s, self._connection.timeout_s))
                heard = self._heard(channel)
                found = await look()
                left_s = (end_ns - monotonic_ns()) / 1e9
                if is_news(found) or left_s <= 0:
                    return found
                await self._signals.wait_until(
                    channel,
                    lambda heard=heard: self._heard(channel) != heard,  # type: ignore[misc]  # mypy: default of a lambda
                    timeout_s=left_s,
                )

    async def close(self) -> None:
        """Stop listening for good. Idempotent."""
        self._is_closed = True
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    # followers ----------------------------------------------------------------------------------
    @contextlib.contextmanager
    def _following(self, channel: str) -> Iterator[None]:
        self._followers[channel] += 1
        self._idle_ns.pop(channel, None)
        try:
            yield
        finally:
            self._followers[channel] -= 1
            if not self._followers[channel]:
                del self._followers[channel]
                self._idle_ns[channel] = monotonic_ns()

    async def _join(self, channel: str, *, timeout_s: float) -> None:
        """Return once the channel is listened to; sooner if that cannot be now."""
        if channel in self._joined:
            return
        if self._listening is None or self._listening.done():
            self._listening = asyncio.ensure_future(self._listen())
        self._changed.set()
        losses = self._losses
        await self._signals.wait_until(
            channel,
            lambda: channel in self._joined or self._losses != losses,
            timeout_s=timeout_s,
        )

    def _heard(self, channel: str) -> tuple[int, int]:
        return self._losses, self._joined.get(channel, 0)

    # the connection -----------------------------------------------------------------------------
    async def _listen(self) -> None:
        waits = delays(_RETRY)
        # Not for ever: a task group that is failing just then swallows the cancellation.
        while not self._is_closed:
            try:
                async with self._connection.listener() as pubsub:
                    await self._serve(pubsub)
            except* (RedisError, OSError) as errors:
                reason = str(errors.exceptions[0])
                self._outage.failed(reason, place=self._connection.place)
            if self._joined:
                waits = delays(_RETRY)
            self._lose()
            if not self._is_closed:
                await asyncio.sleep(next(waits))

    async def _serve(self, pubsub: PubSub) -> None:
        async with asyncio.timeout(2 * self._connection.timeout_s):
            await pubsub.subscribe(self._home)
        with contextlib.suppress(StreamerError):  # whoever asks for something is told
            await self._greet()
        self._outage.went_well()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hear(pubsub))
            group.create_task(self._ask(pubsub))

    async def _hear(self, pubsub: PubSub) -> None:
        while True:
            message = await pubsub.get_message(timeout=_SILENT_S)
            if message is None:
                raise ConnectionLost("the server is silent")
            if message["type"] == "pong":
                continue
            channel = message["channel"].decode()
            if message["type"] == "subscribe":
                self._joined.setdefault(channel, 0)
            elif channel in self._joined:
                self._joined[channel] += 1
            self._signals.fire(channel)

    async def _ask(self, pubsub: PubSub) -> None:
        """Keep subscribed to what is followed; knock when there was nothing to say for a while."""
        asked = {self._home}
        while True:
            self._changed.clear()
            self._drop_idle()
            wanted = {self._home, *self._followers, *self._idle_ns}
            if wanted - asked:
                await pubsub.subscribe(*(wanted - asked))
            if asked - wanted:
                for channel in asked - wanted:
                    self._joined.pop(channel, None)
                await pubsub.unsubscribe(*(asked - wanted))
            asked = wanted
            try:
                async with asyncio.timeout(_PING_S):
                    await self._changed.wait()
            except TimeoutError:
                await pubsub.ping()

    def _drop_idle(self) -> None:
        since_ns = monotonic_ns() - int(_IDLE_S * 1e9)
        for channel in [c for c, idle_ns in self._idle_ns.items() if idle_ns < since_ns]:
            del self._idle_ns[channel]

    def _lose(self) -> None:
        """The connection is gone; everybody looks for themselves."""
        self._losses += 1
        followed = list(self._followers)
        self._joined.clear()
        for channel in followed:
            self._signals.fire(channel)
