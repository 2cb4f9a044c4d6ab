"""Things a replica keeps for a caller that comes back for them at once.

Not beside the replica itself: whoever unpickles a `Ticket` imports its module, and in an ingest
replica that must not bring torch.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["DropOldestShelf", "Ticket"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """Stands for a latent on a replica's shelf."""

    replica: str
    number: int


class DropOldestShelf(Generic[T]):
    """Holds `size` things, each until it is taken; more push the oldest off. Counts those.

    Things grow too old here only when nobody comes for them again; `put` clears those away.
    """

    def __init__(self, size: int, *, max_age_ns: int) -> None:
        self.dropped = 0
        self._size = size
        self._max_age_ns = max_age_ns
        self._tickets = itertools.count(1)
        self._things: OrderedDict[int, tuple[int, T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._things)

    def put(self, thing: T, *, now_ns: int) -> int:
        """Keep it; the ticket is for `take`."""
        self._make_room(now_ns)
        ticket = next(self._tickets)
        self._things[ticket] = (now_ns, thing)
        return ticket

    def put_back(self, thing: T, ticket: int, *, now_ns: int) -> None:
        """Keep what was taken: its caller may come again."""
        self._make_room(now_ns)
        self._things[ticket] = (now_ns, thing)

    def take(self, ticket: int) -> T | None:
        """The thing, once; None when it is not here (any more)."""
        _, thing = self._things.pop(ticket, (0, None))
        return thing

    def _make_room(self, now_ns: int) -> None:
        while self._things and self._is_in_the_way(now_ns):
            self._things.popitem(last=False)
            self.dropped += 1

    def _is_in_the_way(self, now_ns: int) -> bool:
        oldest_ns, _ = next(iter(self._things.values()))
        return len(self._things) >= self._size or now_ns - oldest_ns > self._max_age_ns
