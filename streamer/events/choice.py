"""Other streams for a feed: all that its client asks for, or none."""

from __future__ import annotations

from collections.abc import Iterable

from streamer.events.schema import SessionUpdate
from streamer.events.track import Log

__all__ = ["Choice"]


class Choice:
    """One update that waits until each of its new streams has been opened."""

    def __init__(self) -> None:
        self.opening: list[str] = []
        """Not opened yet."""
        self._update: SessionUpdate | None = None
        self._arrived: dict[str, Log] = {}

    @property
    def pending(self) -> tuple[str, ...]:
        """Its new streams, opened or not."""
        return (*self._arrived, *self.opening)

    def begin(self, update: SessionUpdate, *, opening: Iterable[str]) -> None:
        """Once at a time; `opening` are those of its streams that are not carried yet."""
        self._update, self._arrived, self.opening = update, {}, list(opening)

    def join(self, stream: str, log: Log) -> bool:
        """One is open; whether that was the last. Others than those of `opening` are ignored."""
        if stream not in self.opening:
            return False
        self.opening.remove(stream)
        self._arrived[stream] = log
        return not self.opening

    def end(self) -> tuple[SessionUpdate, dict[str, Log]]:
        """It is made or given up: the update, and the streams that were opened for it."""
        assert self._update is not None, "begin comes first"
        ended = self._update, self._arrived
        self._update, self._arrived, self.opening = None, {}, []
        return ended
