"""What all feeds of one process share: tails by stream, rendered variants, and their number."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from streamer.errors import CapacityError
from streamer.events.render import Renderer
from streamer.gateway.backend import Backend
from streamer.gateway.tail import Tail

__all__ = ["FromHub", "Hub"]

_FULL_RETRY_S = 5.0


class Hub:
    """One per app. Not thread-safe: it belongs to the event loop."""

    def __init__(self, backend: Backend) -> None:
        self.renderer = Renderer(capacity=backend.feed.render_cache)
        self.subscribers = 0
        """Feeds open now."""
        self._store = backend.store
        self._keep = backend.feed.read_limit
        self._max_subscribers = backend.config.max_subscribers
        self._tails: dict[str, Tail] = {}
        self._users: Counter[str] = Counter()

    @contextlib.contextmanager
    def subscribe(self, stream: str) -> Iterator[Tail]:
        """The stream's tail, kept while anybody uses it.

        Raises:
            CapacityError: this process has as many subscribers as it may have.
        """
        if self.subscribers >= self._max_subscribers:
            raise CapacityError(
                f"This gateway has {self._max_subscribers} subscribers, the most it takes.",
                _FULL_RETRY_S,
            )
        tail = self._tails.setdefault(stream, Tail(self._store, stream, keep=self._keep))
        self._users[stream] += 1
        self.subscribers += 1
        try:
            yield tail
        finally:
            self.subscribers -= 1
            self._users[stream] -= 1
            if not self._users[stream]:
                del self._users[stream], self._tails[stream]


def _hub(connection: HTTPConnection) -> Hub:
    hub: Hub = connection.app.state.hub
    return hub


FromHub = Annotated[Hub, Depends(_hub)]
