"""The streams of one session, served in turn, so that a busy one does not starve the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from streamer.events.config import FeedConfig
from streamer.events.outbox import Event, Loss, Outbox
from streamer.events.track import Log, Track

__all__ = ["Lineup"]


class Lineup:
    """The tracks of one session.

    Args:
        config: bounds of outboxes and reads.
        is_wanted: whether the subscriber's filter lets an event through.
    """

    def __init__(self, *, config: FeedConfig, is_wanted: Callable[[Event], bool]) -> None:
        self._config = config
        self._is_wanted = is_wanted
        self._tracks: dict[str, Track] = {}
        self._turns: deque[Track] = deque()
        self._dropped = 0

    def __iter__(self) -> Iterator[Track]:
        return iter(self._tracks.values())

    def __contains__(self, stream: str) -> bool:
        return stream in self._tracks

    def __getitem__(self, stream: str) -> Track:
        return self._tracks[stream]

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(self._tracks)

    @property
    def dropped(self) -> int:
        """Events that the subscriber lost by not taking them."""
        return self._dropped + sum(track.outbox.dropped for track in self)

    def cursors(self) -> dict[str, str]:
        """Stream -> cursor after what was handed out last."""
        return {track.stream: str(track.sent) for track in self}

    def add(self, stream: str, log: Log) -> None:
        """Begin a stream at its head.

        Args:
            stream: its id.
            log: any slice of its log as it is now.
        """
        outbox = Outbox(capacity=self._config.outbox, is_wanted=self._is_wanted)
        track = Track(stream, log=log, outbox=outbox, read_limit=self._config.read_limit)
        self._tracks[stream] = track
        self._turns.append(track)

    def remove(self, stream: str) -> None:
        track = self._tracks.pop(stream)
        self._turns.remove(track)
        self._dropped += track.outbox.dropped

    def is_stuck(self, *, now_ns: int) -> bool:
        """An outbox has been full without a break for longer than the grace."""
        since = [track.outbox.full_since_ns for track in self]
        grace_ns = self._config.slow_grace_s * 1e9
        return any(at_ns is not None and now_ns - at_ns > grace_ns for at_ns in since)

    def pop(self, passes: Callable[[Track, Event], bool]) -> tuple[Track, Event | Loss] | None:
        """The next event that passes, or the next loss, of the stream whose turn it is."""
        for _ in range(len(self._turns)):
            track = self._turns[0]
            self._turns.rotate(-1)
            while (item := track.pop()) is not None:
                if isinstance(item, Loss) or passes(track, item):
                    return track, item
        return None
