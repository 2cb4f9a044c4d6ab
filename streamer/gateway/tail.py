"""The end of one stream's log, read once for all subscribers of this process.

Whoever needs events that are not there yet waits for them in the store, one subscriber at a time;
the others wait for that one (*single flight*). So there is no task to start, stop or supervise: a
subscriber that leaves in mid-flight wakes the others, and one of them goes on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice

from streamer.events.track import Read
from streamer.store.protocol import LogEntry, LogSlice, Store

__all__ = ["Tail"]

_WAIT_S = 1.0
"""Longest wait in the store; a log that was lost and begun anew is noticed within it."""


class Tail:
    """Answers the reads of feed sessions.

    Args:
        store: where the log is.
        stream: whose.
        keep: newest entries kept; a subscriber further back reads the store itself.
    """

    def __init__(self, store: Store, stream: str, *, keep: int) -> None:
        self._store = store
        self._stream = stream
        self._entries: deque[LogEntry] = deque(maxlen=keep)
        self._state: LogSlice | None = None
        """Newest known epoch and bounds of the log."""
        self._flight: asyncio.Future[None] | None = None

    async def now(self) -> LogSlice:
        """Where the log stands, without events. Safe to cancel. Raises `NotFound`."""
        return await self._look(after_seq=0, limit=0)

    async def after(self, read: Read) -> LogSlice | None:
        """What this read gets; waits up to a second for events that are not there yet.

        Returns:
            None when nothing came: ask again. A slice of another epoch than the read's comes at
            once, with events or without. Safe to cancel.

        Raises:
            NotFound: the log is forgotten.
        """
        state = self._state
        if state is not None and read.after_seq < state.head_seq:
            return self._kept(read) or await self._read(read)
        if state is not None and (read.after_seq > state.head_seq or self._is_other(read)):
            return await self._read(read)  # a lost log, or a cursor that was never given out
        await self._next(read)
        return self._kept(read) or (self._state if self._is_other(read) else None)

    async def _next(self, read: Read) -> None:
        """Return when the log went on, or after a while; one caller asks for all of them."""
        if self._flight is not None:
            await asyncio.wait([self._flight])
            return
        flight = self._flight = asyncio.get_running_loop().create_future()
        try:
            await self._store.wait(self._stream, after_seq=read.after_seq, timeout_s=_WAIT_S)
            await self._read(read)
        finally:
            self._flight = None
            flight.set_result(None)

    async def _read(self, read: Read) -> LogSlice:
        return await self._look(after_seq=read.after_seq, limit=read.limit)

    async def _look(self, *, after_seq: int, limit: int) -> LogSlice:
        while True:
            before = self._epoch
            log = await self._store.read(self._stream, after_seq=after_seq, limit=limit)
            # Where the epoch became another one meanwhile, this answer may be the older one.
            if self._epoch in (before, log.epoch):
                return self._keep(log)

    @property
    def _epoch(self) -> str | None:
        return None if self._state is None else self._state.epoch

    def _is_other(self, read: Read) -> bool:
        return read.epoch is not None and read.epoch != self._epoch

    def _keep(self, log: LogSlice) -> LogSlice:
        known = self._state
        if known is None or known.epoch != log.epoch:
            self._entries.clear()
        elif log.head_seq < known.head_seq:
            return log  # overtaken by a later read
        self._state = LogSlice(
            epoch=log.epoch, first_seq=log.first_seq, head_seq=log.head_seq, entries=()
        )
        if log.entries and log.entries[-1].seq == log.head_seq:
            self._extend(log.entries)
        return log

    def _extend(self, entries: tuple[LogEntry, ...]) -> None:
        """Entries are kept without holes, up to the head."""
        last = self._entries[-1].seq if self._entries else 0
        if entries[0].seq > last + 1:
            self._entries.clear()
        self._entries.extend(entry for entry in entries if entry.seq > last)

    def _kept(self, read: Read) -> LogSlice | None:
        """The answer from memory, if it is there."""
        state = self._state
        if state is None or not self._entries or self._entries[-1].seq != state.head_seq:
            return None
        start = read.after_seq + 1 - self._entries[0].seq
        if start < 0 or start >= len(self._entries):
            return None
        return LogSlice(
            epoch=state.epoch,
            first_seq=state.first_seq,
            head_seq=state.head_seq,
            entries=tuple(islice(self._entries, start, start + read.limit)),
        )
