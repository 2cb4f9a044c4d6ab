"""Real time for recorded pictures: holds each back until its time has come."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Pace"]

# A jump in the timestamps, or a reader that was stopped, must not cause an endless wait or a burst.
_JUMP_S = 5.0


class Pace:
    """Ties media time to the clock at the first picture, and again after a jump.

    Args:
        now_ns: monotonic clock.
        wait: waits that many seconds, or less when it is to stop.
    """

    def __init__(self, *, now_ns: Callable[[], int], wait: Callable[[float], object]) -> None:
        self._now_ns = now_ns
        self._wait = wait
        self._zero_s: float | None = None

    def hold(self, time_s: float) -> None:
        """Return when the picture of this media time, seconds, is due."""
        now_s = self._now_ns() / 1e9
        if self._zero_s is None or abs(self._zero_s + time_s - now_s) > _JUMP_S:
            self._zero_s = now_s - time_s
        early_s = self._zero_s + time_s - now_s
        if early_s > 0:
            self._wait(early_s)
