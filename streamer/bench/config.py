"""What a soak runs, how often it looks, and what it still calls flat."""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamer.errors import ConfigError

__all__ = ["CAMERA", "SoakBounds", "SoakConfig"]

CAMERA = "synthetic:bounce?fps=25&size=96"
"""A live camera of 25 pictures per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakBounds:
    """Where a measured number stops being good."""

    memory_mb_per_h: float = 25.0
    """Growth of the service's memory, fitted after the warm-up, MB per hour."""
    memory_mb: float = 10.0
    """Growth over the whole judged time that is noise, whatever the rate says: a short run cannot
    tell a leak from an allocator."""
    age_factor: float = 1.5
    """p95 of the events' age in the last third, over that in the first."""
    age_slack_s: float = 0.25
    """Added to that bound, seconds: of small ages a third more is nothing."""
    age_s: float = 5.0
    """p95 of the age over the whole judged time, seconds."""
    threads: int = 3
    """Threads that the last third may have more than the first."""
    fds: int = 8
    """Open files that the last third may have more than the first; a reader that is cut and comes
    back has two sockets for a moment."""
    object_store_mb: float = 32.0
    """The same for Ray's object store, MB."""

    def __post_init__(self) -> None:
        for name in ("memory_mb_per_h", "age_s", "age_factor"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(f"{name} is {value}; a bound is a number above 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakConfig:
    """One soak."""

    minutes: float = 30.0
    """How long, warm-up included."""
    streams: int = 1
    """Live streams at once."""
    source: str = CAMERA
    """What each of them watches."""
    stride_s: float = 0.5
    """Seconds between two events of a stream."""
    horizons_s: tuple[float, ...] = (0.5, 1.0, 2.0)
    """As `POST /v1/streams` takes them."""
    sample_s: float = 5.0
    """Seconds between two looks at the service."""
    slow_read_s: float = 3.0
    """The slow reader takes one message in so many seconds."""
    bounds: SoakBounds = SoakBounds()
    """What is still good."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.minutes) and 0.2 <= self.minutes <= 7 * 24 * 60):
            raise ConfigError(
                f"minutes is {self.minutes}; a soak takes from 0.2 minutes to a week."
            )
        if not 1 <= self.streams <= 64:
            raise ConfigError(f"streams is {self.streams}; choose from 1 to 64.")
        for name in ("stride_s", "sample_s", "slow_read_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and 0 < value <= 600):
                raise ConfigError(f"{name} is {value}; choose above 0 and at most 600 seconds.")
        if self.slow_read_s <= self.stride_s:
            raise ConfigError(
                f"The slow reader takes a message every {self.slow_read_s:g} s and one is made"
                f" every {self.stride_s:g} s: it would not be slow."
            )

    @property
    def seconds(self) -> float:
        return self.minutes * 60

    @property
    def warm_up_s(self) -> float:
        """What is measured and not judged: a fifth, at most two minutes."""
        return min(120.0, self.seconds / 5)

    @property
    def retain_s(self) -> float:
        """How long events are kept: the log is full when the judging begins."""
        return max(5.0, self.warm_up_s)
