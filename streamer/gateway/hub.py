"""What all feeds of one process share: tails, figures and pictures by stream, rendered variants,
and how many feeds there are.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from streamer.errors import CapacityError
from streamer.events.compose import Message
from streamer.events.render import Renderer
from streamer.events.schema import StreamStats
from streamer.events.showcase import Shown
from streamer.gateway.album import Album
from streamer.gateway.backend import Backend
from streamer.gateway.stats import StatsDesk
from streamer.gateway.tail import Tail

__all__ = ["FromHub", "Hub"]

_FULL_RETRY_S = 5.0


@dataclass(slots=True)
class _Shared:
    tail: Tail
    desk: StatsDesk
    album: Album
    users: int = 0


class Hub:
    """One per app. Not thread-safe: it belongs to the event loop."""

    def __init__(self, backend: Backend) -> None:
        self.renderer = Renderer(capacity=backend.feed.render_cache)
        self.subscribers = 0
        """Feeds open now."""
        self._backend = backend
        self._shared: dict[str, _Shared] = {}
        self._holders: Counter[str] = Counter()
        self._meter = backend.meter
        self._count(0)

    @contextlib.contextmanager
    def admit(self, token: str) -> Iterator[None]:
        """Count one feed while it is open.

        Args:
            token: name of its access token; empty without one.

        Raises:
            CapacityError: this process, or this token, has as many as it may have.
        """
        config = self._backend.config
        if self.subscribers >= config.max_subscribers:
            raise CapacityError(
                f"This gateway has {config.max_subscribers} subscribers, the most it takes.",
                _FULL_RETRY_S,
            )
        if token and self._holders[token] >= config.max_subscribers_per_token:
            raise CapacityError(
                f"Token {token} has {config.max_subscribers_per_token} feeds open here, the most"
                " it may have.",
                _FULL_RETRY_S,
            )
        self._count(+1)
        self._holders[token] += 1
        try:
            yield
        finally:
            self._count(-1)
            self._holders[token] -= 1
            if not self._holders[token]:
                del self._holders[token]

    @contextlib.contextmanager
    def tail(self, stream: str) -> Iterator[Tail]:
        """The stream's tail, kept while anybody uses it."""
        store, keep = self._backend.store, self._backend.feed.read_limit
        shared = self._shared.get(stream)
        if shared is None:
            shared = _Shared(
                Tail(store, stream, keep=keep), StatsDesk(store, stream), Album(store, stream)
            )
            self._shared[stream] = shared
        shared.users += 1
        try:
            yield shared.tail
        finally:
            shared.users -= 1
            if not shared.users:
                del self._shared[stream]

    async def stats(self, stream: str) -> StreamStats | None:
        """How a stream is doing whose tail is in use; None for another one. Safe to cancel.

        Raises:
            NotFound: its log is forgotten.
            CapacityError: the store does not answer.
        """
        shared = self._shared.get(stream)
        return None if shared is None else await shared.desk.stats()

    async def picture(self, stream: str, *, seq: int, capture_time: str) -> Shown | None:
        """The latent picture of an anticipation of a stream whose tail is in use; None when there
        is none. Safe to cancel."""
        shared = self._shared.get(stream)
        if shared is None:
            return None
        return await shared.album.picture(seq=seq, capture_time=capture_time)

    def note_gap(self, message: Message) -> None:
        """A subscriber is told that events are missing. Rare, so the reason is read from what it is
        told."""
        self._meter.add("streamer_feed_gaps_total", reason=json.loads(message.data)["reason"])

    def _count(self, change: int) -> None:
        self.subscribers += change
        self._meter.observe("streamer_subscribers", self.subscribers)


async def _hub(connection: HTTPConnection) -> Hub:
    hub: Hub = connection.app.state.hub
    return hub


FromHub = Annotated[Hub, Depends(_hub)]
