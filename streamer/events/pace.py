"""No more than so many events a second on average, by the time at which they were made.

The events' own time counts, not the time of sending: the same events pass live and when a client
catches up, and nothing has to wait for a timer.
"""

from __future__ import annotations

__all__ = ["Pace"]

_JITTER = 0.4
"""Part of an interval by which an event may be early or late and still be that of its turn, so that
a stream at just the wanted rate passes whole."""

_LONGEST_NS = 1e18
"""Thirty years; the quotient of a tiny rate is infinite."""


class Pace:
    """Which events of one stream pass, given in their order."""

    def __init__(self) -> None:
        self._due_ns: int | None = None
        self._last_ns = 0

    def passes(self, time_ns: int | None, *, rate_hz: float) -> bool:
        """Whether the event made at this time is one of those; one without a time always is."""
        if time_ns is None:
            return True
        interval_ns = int(min(1e9 / rate_hz, _LONGEST_NS))
        if self._due_ns is None or time_ns < self._last_ns:  # the first, or the clock was set back
            self._due_ns = time_ns
        self._last_ns = time_ns
        late_ns, jitter_ns = time_ns - self._due_ns, int(_JITTER * interval_ns)
        if late_ns < -jitter_ns:
            return False
        turn_ns = self._due_ns if late_ns <= jitter_ns else time_ns
        self._due_ns = turn_ns + interval_ns
        return True
