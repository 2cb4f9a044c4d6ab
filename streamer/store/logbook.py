"""All logs of an embedded store, and what bounds them together. No I/O; O(log streams) a call."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable

from streamer.store.config import StoreConfig
from streamer.store.refusals import unknown_stream
from streamer.store.retained import RetainedLog

__all__ = ["Logbook"]


class Logbook:
    """Logs by stream, also of deleted streams.

    A deleted stream's events stay until they are too old, or `max_deleted_logs` other streams were
    deleted after it. Its last seq is remembered longer; beyond `max_deleted` of them only the
    greatest forgotten one is, and streams that are not known go on after it: a number is never
    given twice in one epoch, though such a stream does not begin at 1.

    Args:
        config: bounds.
        now: monotonic nanoseconds.
    """

    def __init__(self, *, config: StoreConfig, now: Callable[[], int]) -> None:
        self._config = config
        self._now = now
        self._logs: dict[str, RetainedLog] = {}
        self._num_bytes = 0
        self._ends: list[tuple[int, str]] = []
        """Heap of when each log's oldest event is due; never later than that event's end."""
        self._due: dict[str, int] = {}
        """The valid heap entry of each log that has events; others in the heap are void."""
        self._readable: OrderedDict[str, None] = OrderedDict()
        self._deleted: OrderedDict[str, None] = OrderedDict()
        self._forgotten_seq = 0

    def open(self, stream: str, *, retain_s: float) -> None:
        """A stream was registered: begin its log or go on with it."""
        self._readable.pop(stream, None)
        self._deleted.pop(stream, None)
        if stream not in self._logs:
            self._logs[stream] = RetainedLog(
                max_events=self._config.max_events, head_seq=self._forgotten_seq
            )
        self._logs[stream].retain_ns = int(retain_s * 1e9)
        self._schedule(stream)

    def retire(self, stream: str) -> None:
        """A stream was deleted."""
        self._readable[stream] = None
        self._deleted[stream] = None
        if len(self._readable) > self._config.max_deleted_logs:
            self._empty(self._readable.popitem(last=False)[0])
        if len(self._deleted) > self._config.max_deleted:
            self._forget(self._deleted.popitem(last=False)[0])

    def get(self, stream: str) -> RetainedLog:
        """The log without what is too old.

        Raises:
            NotFound: never registered (or deleted so long ago that it was forgotten).
        """
        self._expire()
        if stream not in self._logs:
            raise unknown_stream(stream)
        return self._logs[stream]

    def append(self, stream: str, body: bytes) -> int:
        """Add one event to a registered stream's log; return its seq."""
        log = self.get(stream)
        before = log.num_bytes
        seq = log.append(body, now_ns=self._now())
        self._num_bytes += log.num_bytes - before
        if stream not in self._due:
            self._schedule(stream)
        while self._num_bytes > self._config.max_log_bytes:
            self._shed()
        return seq

    def _schedule(self, stream: str) -> None:
        end_ns = self._logs[stream].end_ns
        if end_ns is None:
            self._due.pop(stream, None)
        else:
            self._due[stream] = end_ns
            heapq.heappush(self._ends, (end_ns, stream))

    def _expire(self) -> None:
        now_ns = self._now()
        while self._ends and self._ends[0][0] <= now_ns:
            stream = self._next_due()
            if stream is not None:
                self._shrink(stream, lambda log: log.drop_older(now_ns=now_ns))

    def _shed(self) -> None:
        """Free the event that would expire next."""
        stream = self._next_due()
        if stream is not None:
            self._shrink(stream, RetainedLog.drop_oldest)

    def _next_due(self) -> str | None:
        end_ns, stream = heapq.heappop(self._ends)
        return stream if self._due.get(stream) == end_ns else None

    def _shrink(self, stream: str, drop: Callable[[RetainedLog], None]) -> None:
        log = self._logs[stream]
        before = log.num_bytes
        drop(log)
        self._num_bytes -= before - log.num_bytes
        self._schedule(stream)

    def _empty(self, stream: str) -> None:
        self._shrink(stream, RetainedLog.drop_all)

    def _forget(self, stream: str) -> None:
        self._readable.pop(stream, None)
        self._empty(stream)
        self._forgotten_seq = max(self._forgotten_seq, self._logs.pop(stream).head_seq)
