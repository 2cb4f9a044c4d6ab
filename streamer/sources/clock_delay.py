"""Delays between presentation and arrival: the smallest one, and where it drifts. Sans-I/O.

The least delayed picture is nearest to the truth, so both look at minima: of a network that holds
back one picture for a second they see nothing.
"""

from __future__ import annotations

from collections import deque
from itertools import combinations
from statistics import median

__all__ = ["Drift", "SmallestDelay"]

_FEWEST_WINDOWS = 12
_MOST_WINDOWS = 64


class SmallestDelay:
    """Minimum over the last one to two windows, in constant memory. All in nanoseconds."""

    def __init__(self, window_ns: int) -> None:
        self._window_ns = window_ns
        self._started_ns: int | None = None
        self._before: int | None = None
        self._now: int | None = None

    @property
    def value(self) -> int | None:
        """None before the first delay."""
        known = [delay for delay in (self._before, self._now) if delay is not None]
        return min(known, default=None)

    def add(self, delay: int, *, at_ns: int) -> int:
        """Take one more; the minimum, this one included."""
        if self._started_ns is None or at_ns - self._started_ns >= self._window_ns:
            self._started_ns, self._before, self._now = at_ns, self._now, None
        self._now = delay if self._now is None else min(self._now, delay)
        return self._now if self._before is None else min(self._before, self._now)


class Drift:
    """How fast the source's media clock runs against ours: the Theil-Sen slope (median of the
    slopes of all pairs) through the smallest delays of the newest 64 windows."""

    def __init__(self, window_ns: int) -> None:
        self.ppm: float | None = None
        """Parts per million, positive when the source's clock is fast; None until 12 windows."""
        self._window_ns = window_ns
        self._started_ns: int | None = None
        self._smallest = (0, 0)
        self._minima: deque[tuple[int, int]] = deque(maxlen=_MOST_WINDOWS)

    def add(self, delay: int, *, at_ns: int) -> None:
        """Take the delay of a picture that arrived at `at_ns`."""
        if self._started_ns is not None and at_ns - self._started_ns >= self._window_ns:
            self._minima.append(self._smallest)
            self._started_ns = None
            if len(self._minima) >= _FEWEST_WINDOWS:
                self.ppm = _ppm(self._minima)
        if self._started_ns is None:
            self._started_ns, self._smallest = at_ns, (delay, at_ns)
        else:
            self._smallest = min(self._smallest, (delay, at_ns))


def _ppm(minima: deque[tuple[int, int]]) -> float:
    slopes = [
        (delay - before) / (at_ns - before_ns)
        for (before, before_ns), (delay, at_ns) in combinations(minima, 2)
        if at_ns > before_ns
    ]
    return round(-1e6 * median(slopes), 2) + 0.0  # no -0.0
