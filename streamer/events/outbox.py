"""What waits for one subscriber of one stream: bounded, the oldest goes first, its loss is told.

Drops are collected into one `Loss` in front of what is left. Losses found in the log (retention,
restart) stand between the events and count no room; dropping past them joins them into the front.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Event", "Loss", "Outbox"]


@dataclass(frozen=True, slots=True)
class Event:
    """One retained event on its way."""

    epoch: str
    seq: int
    body: bytes
    """JSON object without ``id`` and ``seq``."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Events that will not come; becomes a `gap` message. Empty when ``to_seq < from_seq``."""

    epoch: str
    from_seq: int
    to_seq: int
    reason: Literal["slow_subscriber", "retention", "restart"]


class Outbox:
    """FIFO of events and losses with policy drop-oldest.

    Args:
        capacity: events kept.
        is_wanted: whether the subscriber's filter lets an event through; dropping one that it does
            not want is no loss.
    """

    def __init__(self, *, capacity: int, is_wanted: Callable[[Event], bool]) -> None:
        self._capacity = capacity
        self._is_wanted = is_wanted
        self._items: deque[Event | Loss] = deque()
        self._front: Loss | None = None
        self._events = 0
        self.dropped = 0
        """Wanted events dropped so far."""
        self.full_since_ns: int | None = None
        """Since when there has been no room without a break; None while there is."""

    @property
    def room(self) -> int:
        """Events that fit without dropping one."""
        return self._capacity - self._events

    def push(self, event: Event, *, now_ns: int) -> None:
        """Add at the end; when there is no room, drop the oldest event first."""
        if self._events >= self._capacity:
            self._drop_oldest()
        self._items.append(event)
        self._events += 1
        if self._events >= self._capacity and self.full_since_ns is None:
            self.full_since_ns = now_ns

    def lose(self, loss: Loss) -> None:
        """Add at the end that these events do not come."""
        if self._items and isinstance(self._items[-1], Loss):
            self._items[-1] = _join(self._items[-1], loss)
        else:
            self._items.append(loss)

    def pop(self) -> Event | Loss | None:
        """Take the oldest, None when there is nothing."""
        if self._front is not None:
            loss, self._front = self._front, None
            return loss
        if not self._items:
            return None
        item = self._items.popleft()
        if isinstance(item, Event):
            self._events -= 1
            self.full_since_ns = None
        return item

    def clear(self) -> None:
        """Forget all that waits, losses too."""
        self._items.clear()
        self._front = None
        self._events = 0
        self.full_since_ns = None

    def _drop_oldest(self) -> None:
        item = self._items.popleft()
        while isinstance(item, Loss):
            self._front = _join(self._front, item)
            item = self._items.popleft()
        self._events -= 1
        if self._is_wanted(item):
            self.dropped += 1
            loss = Loss(item.epoch, item.seq, item.seq, "slow_subscriber")
            self._front = _join(self._front, loss)


def _join(first: Loss | None, then: Loss) -> Loss:
    """Two losses in a row as one. A restart makes what was lost before it meaningless."""
    if first is None or then.reason == "restart":
        return then
    reason = first.reason if first.reason in ("restart", then.reason) else "slow_subscriber"
    return Loss(first.epoch, first.from_seq, then.to_seq, reason)
