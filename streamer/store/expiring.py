"""A mapping whose values vanish at their time; they are removed as others come, O(log n)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["Expiring"]

V = TypeVar("V")


class Expiring(Generic[V]):
    """Values with a time to live.

    Args:
        now: monotonic nanoseconds.
    """

    def __init__(self, *, now: Callable[[], int]) -> None:
        self._now = now
        self._values: dict[str, tuple[int, V]] = {}
        self._ends: list[tuple[int, str]] = []

    def put(self, key: str, value: V, *, ttl_s: float) -> None:
        """Set, or renew."""
        end = self._now() + int(ttl_s * 1e9)
        self._purge()
        self._values[key] = (end, value)
        heapq.heappush(self._ends, (end, key))

    def get(self, key: str) -> V | None:
        """The value, or None when there is none or its time is over."""
        end, value = self._values.get(key, (0, None))
        return value if end > self._now() else None

    def drop(self, key: str) -> None:
        """Forget; nothing happens when there is nothing."""
        self._values.pop(key, None)

    def items(self) -> Iterator[tuple[str, V]]:
        """What is fresh, in the order of its first coming."""
        self._purge()
        return iter([(key, value) for key, (_, value) in self._values.items()])

    def _purge(self) -> None:
        now = self._now()
        while self._ends and self._ends[0][0] <= now:
            _, key = heapq.heappop(self._ends)
            if key in self._values and self._values[key][0] <= now:
                del self._values[key]
