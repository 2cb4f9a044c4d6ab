"""One stream's events: numbered from 1 without holes, bounded by count and age. No I/O, no clock.

A list with a moving start: a range read costs its length, dropping the oldest is amortised O(1).
"""

from __future__ import annotations

from streamer.store.protocol import LogEntry

__all__ = ["RetainedLog"]

_COMPACT_ABOVE = 64
_GONE = (LogEntry(seq=0, body=b""), 0)


class RetainedLog:
    """The log of one stream, also after the stream was deleted.

    Args:
        max_events: events kept.
        head_seq: number given out last.
    """

    def __init__(self, *, max_events: int, head_seq: int = 0) -> None:
        self.head_seq = head_seq
        self.retain_ns = 0
        """Age beyond which an event goes; of the newest registration."""
        self.num_bytes = 0
        """Of all bodies kept."""
        self._max_events = max_events
        self._entries: list[tuple[LogEntry, int]] = []
        self._start = 0

    def __len__(self) -> int:
        return len(self._entries) - self._start

    @property
    def first_seq(self) -> int:
        """Oldest kept; ``head_seq + 1`` when nothing is."""
        return self.head_seq - len(self) + 1

    @property
    def end_ns(self) -> int | None:
        """When the oldest event becomes too old; None when nothing is kept."""
        return self._entries[self._start][1] + self.retain_ns if len(self) else None

    def append(self, body: bytes, *, now_ns: int) -> int:
        """Add one event, drop the oldest if there are too many; return the seq."""
        self.head_seq += 1
        self._entries.append((LogEntry(seq=self.head_seq, body=body), now_ns))
        self.num_bytes += len(body)
        if len(self) > self._max_events:
            self.drop_oldest()
        return self.head_seq

    def after(self, seq: int, *, limit: int) -> tuple[LogEntry, ...]:
        """At most `limit` events with a greater seq, oldest first."""
        begin = self._start + max(0, seq + 1 - self.first_seq)
        return tuple(entry for entry, _ in self._entries[begin : begin + limit])

    def drop_older(self, *, now_ns: int) -> None:
        """Drop what is older than `retain_ns`."""
        while (end := self.end_ns) is not None and end <= now_ns:
            self.drop_oldest()

    def drop_all(self) -> None:
        """Drop every event; the numbers go on."""
        self._entries, self._start, self.num_bytes = [], 0, 0

    def drop_oldest(self) -> None:
        """Drop one event."""
        self.num_bytes -= len(self._entries[self._start][0].body)
        self._entries[self._start] = _GONE  # frees the body before the list is compacted
        self._start += 1
        if self._start > _COMPACT_ABOVE and self._start * 2 > len(self._entries):
            del self._entries[: self._start]
            self._start = 0
