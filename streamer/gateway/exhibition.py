"""Beside one feed: finds the latent picture of each anticipation that was sent.

Of a stream whose picture is being looked for, the newest anticipation waits; it displaces one that
waited before.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from streamer.events.compose import Message
from streamer.events.session import FeedSession
from streamer.gateway.hub import Hub
from streamer.store.protocol import LogEntry

__all__ = ["Exhibition"]


class Exhibition:
    """Does nothing while the subscriber wants no pictures.

    Args:
        session: gets the pictures.
        hub: has the albums.
        notice: called when the session may have something to say.
    """

    def __init__(self, session: FeedSession, *, hub: Hub, notice: Callable[[], None]) -> None:
        self._session = session
        self._hub = hub
        self._notice = notice
        self._sent: dict[str, dict[str, Any]] = {}
        self._news = asyncio.Event()
        self._busy: set[str] = set()

    def sent(self, message: Message) -> None:
        """The subscriber took this one."""
        if message.type == "anticipation" and self._session.options.picture:
            event = json.loads(message.data)
            self._sent[event["stream"]] = event
            self._news.set()

    def passed(self, stream: str, entries: Sequence[LogEntry]) -> None:
        """These came and are not all sent: whoever wants no anticipations gets pictures, too."""
        types = self._session.options.types
        if not self._session.options.picture or types is None or "anticipation" in types:
            return
        for entry in reversed(entries):
            if self._hub.renderer.event_type(entry.body) == "anticipation":
                self._sent[stream] = json.loads(entry.body) | {"seq": entry.seq}
                self._news.set()
                return

    async def run(self) -> None:
        """For ever. Safe to cancel."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._news.wait()
                self._news.clear()
                for stream in self._sent.keys() - self._busy:
                    self._busy.add(stream)
                    group.create_task(self._find(stream))

    async def _find(self, stream: str) -> None:
        try:
            while (event := self._sent.pop(stream, None)) is not None:
                shown = await self._hub.picture(
                    stream, seq=event["seq"], capture_time=event["capture_time"]
                )
                if shown is not None:
                    self._session.show(shown)
                    self._notice()
        finally:
            self._busy.discard(stream)
