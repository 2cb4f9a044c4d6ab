"""The true rate of a source: count over span, never the declared one, never a mean of gaps."""

from __future__ import annotations

from collections import deque

__all__ = ["RateMeter"]

_MAX_SAMPLES = 1024


class RateMeter:
    """Events per second over the newest `span_s` seconds. Bursts do not fool it.

    Args:
        span_s: how far back it looks, seconds (less where more than 1024 samples lie in it).
        settle_s: seconds after the first event that are not counted: some sources begin with a
            burst of what was before.
    """

    def __init__(self, *, span_s: float, settle_s: float = 0.0) -> None:
        self._span_s = span_s
        self._settle_s = settle_s
        self._samples: deque[tuple[float, int]] = deque(maxlen=_MAX_SAMPLES)
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self._samples.clear()
        self._settled_at_s: float | None = None
        self._total = 0

    def add(self, time_s: float, *, total: int | None = None) -> None:
        """One more event at this time, or so many in all by then. Times do not fall by much."""
        self._total = self._total + 1 if total is None else total
        if self._settled_at_s is None and self._total:
            self._settled_at_s = time_s + self._settle_s
        if self._settled_at_s is None or time_s < self._settled_at_s:
            return
        self._samples.append((time_s, self._total))
        while len(self._samples) > 2 and time_s - self._samples[1][0] >= self._span_s:
            self._samples.popleft()

    @property
    def span_s(self) -> float:
        """Seconds between the oldest and the newest sample."""
        return self._samples[-1][0] - self._samples[0][0] if self._samples else 0.0

    @property
    def fps(self) -> float | None:
        """Events per second; None before there are two samples at different times."""
        span_s = self.span_s
        return (self._samples[-1][1] - self._samples[0][1]) / span_s if span_s > 0 else None
