"""The true rate of a source: count over span, never the declared one, never a mean of gaps."""

from __future__ import annotations

from collections import deque

__all__ = ["RateMeter"]

_MAX_PICTURES = 1024


class RateMeter:
    """Pictures per second over the newest `span_s` seconds. Bursts do not fool it.

    Args:
        span_s: how far back it looks, seconds (less where more than 1024 pictures lie in it).
    """

    def __init__(self, *, span_s: float) -> None:
        self._span_s = span_s
        self._times_s: deque[float] = deque(maxlen=_MAX_PICTURES)

    def restart(self) -> None:
        """Forget everything."""
        self._times_s.clear()

    def add(self, time_s: float) -> None:
        """Count one picture at this time of its timeline."""
        self._times_s.append(time_s)
        while time_s - self._times_s[0] > self._span_s and len(self._times_s) > 2:
            self._times_s.popleft()

    @property
    def span_s(self) -> float:
        """Seconds between the oldest and the newest picture counted."""
        return self._times_s[-1] - self._times_s[0] if self._times_s else 0.0

    @property
    def fps(self) -> float | None:
        """Pictures per second; None before there are two at different times."""
        span_s = self.span_s
        return (len(self._times_s) - 1) / span_s if span_s > 0 else None
