"""Where one subscriber stands in one stream's log. Sans-I/O: slices of the log in, items out.

Catching up is paced by the outbox: no more is asked of the log than has room, so a client that
resumes far back loses nothing to the outbox. Once at the head the track is live: it reads whatever
comes, and a subscriber that does not keep up loses the oldest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streamer.errors import ResumeGone
from streamer.events.cursor import Cursor, format_cursor
from streamer.events.outbox import Event, Loss, Outbox
from streamer.events.pace import Pace

__all__ = ["Entry", "Log", "Read", "Track"]


class Entry(Protocol):
    """`streamer.store.protocol.LogEntry`, as far as a feed needs it."""

    @property
    def seq(self) -> int: ...
    @property
    def body(self) -> bytes: ...


class Log(Protocol):
    """`streamer.store.protocol.LogSlice`, as far as a feed needs it."""

    @property
    def epoch(self) -> str: ...
    @property
    def first_seq(self) -> int: ...
    @property
    def head_seq(self) -> int: ...
    @property
    def entries(self) -> Sequence[Entry]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What to ask of the log next; give the answer back together with it."""

    stream: str
    epoch: str | None = None
    """In which `after_seq` counts; None: the present one, whichever that is."""
    after_seq: int
    limit: int
    turn: int
    """Counts the resumes: an answer to a read from before a resume is thrown away."""


class Track:
    """One stream of one session.

    Args:
        stream: its id.
        log: any slice of its log as it is now.
        outbox: what waits for the subscriber.
        read_limit: events asked of the log at once.
    """

    def __init__(self, stream: str, *, log: Log, outbox: Outbox, read_limit: int) -> None:
        self.stream = stream
        self.outbox = outbox
        self.head_seq = log.head_seq
        self.sent = Cursor(log.epoch, log.head_seq)
        """Cursor after what was handed out last."""
        self._read_limit = read_limit
        self._epoch = log.epoch
        self._position = log.head_seq
        self._is_live = True
        self.pace = Pace()
        self._turn = 0
        self._pending: tuple[Cursor, bool] | None = None

    def resume(self, cursor: Cursor, *, strict: bool) -> None:
        """Go on after `cursor`; what waits is forgotten. The next slice decides what is lost."""
        self.outbox.clear()
        self.pace = Pace()
        self._pending = (cursor, strict)
        self.sent = cursor
        self._position = cursor.seq
        self._is_live = False
        self._turn += 1

    def rewind(self) -> None:
        """Forget what waits; it is read again from where the subscriber stands."""
        if self._pending is None:
            self.resume(self.sent, strict=False)

    def wanted(self) -> Read | None:
        """The next read; None while catching up with a full outbox."""
        limit = self._read_limit
        if not self._is_live:
            limit = min(limit, self.outbox.room)
        if limit == 0:
            return None
        return Read(
            stream=self.stream,
            epoch=self._epoch if self._pending is None else self._pending[0].epoch,
            after_seq=self._position,
            limit=limit,
            turn=self._turn,
        )

    def receive(self, read: Read, log: Log, *, now_ns: int) -> None:
        """Take the answer to `read`; one that is out of date is ignored.

        Raises:
            ResumeGone: a strict resume from a place that is not in the log.
        """
        if read.turn != self._turn or read.after_seq != self._position:
            return
        self.settle(log)
        if log.epoch != self._epoch or log.head_seq < self._position:
            self._restart(log)
        if read.turn == self._turn:
            self._take(log, now_ns=now_ns)
        self._is_live = self._is_live or self._position >= log.head_seq

    def settle(self, log: Log) -> None:
        """Decide a pending resume with the log as it is now; see `receive`."""
        self.head_seq = log.head_seq
        if self._pending is None:
            return
        (cursor, strict), self._pending = self._pending, None
        is_known = cursor.epoch in (None, log.epoch) and cursor.seq <= log.head_seq
        if strict and not (is_known and cursor.seq + 1 >= log.first_seq):
            raise ResumeGone(
                f"Stream {self.stream} retains {format_cursor(log.epoch, log.first_seq)} to "
                f"{log.head_seq}; the cursor is outside. Resume without strict to be told the gap."
            )
        if is_known:
            self._epoch = log.epoch
            self.sent = Cursor(log.epoch, cursor.seq)
        else:
            self._restart(log)

    def pop(self) -> Event | Loss | None:
        """The next item for the subscriber, in order."""
        item = self.outbox.pop()
        if isinstance(item, Event):
            self.sent = Cursor(item.epoch, item.seq)
        elif isinstance(item, Loss):
            self.sent = Cursor(item.epoch, item.to_seq)
        return item

    def _restart(self, log: Log) -> None:
        self.outbox.lose(Loss(log.epoch, 1, log.first_seq - 1, "restart"))
        self._epoch = log.epoch
        self._position = log.first_seq - 1
        self._is_live = False
        self._turn += 1

    def _take(self, log: Log, *, now_ns: int) -> None:
        for entry in log.entries:
            if entry.seq > self._position:
                self._skip_to(entry.seq)
                self.outbox.push(Event(self._epoch, entry.seq, entry.body), now_ns=now_ns)
                self._position = entry.seq
        if not log.entries:
            self._skip_to(log.first_seq)

    def _skip_to(self, seq: int) -> None:
        if seq > self._position + 1:
            self.outbox.lose(Loss(self._epoch, self._position + 1, seq - 1, "retention"))
            self._position = seq - 1
