"""When was this picture taken? Presentation times -> UTC. Sans-I/O: all times come in.

Three ways, the best one that can be believed:

- ``rtcp``: the camera's own wall clock. FFmpeg attaches it to packets as ``prft`` side data once
  an RTCP sender report has come. Now and then the parser attaches the next packet's time (one
  frame off), so the offset is a median over the last packets.
- ``media``: presentation time plus the smallest delay seen between it and arrival. The least
  delayed picture is nearest to the truth; the minimum is taken over a sliding time, so that the
  camera's clock may drift. It is measured on the monotonic clock: setting ours must not look like
  a delay.
- ``arrival``: no presentation time, or one that repeats: the time at which the picture came.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass

from streamer.errors import ConfigError
from streamer.records import CaptureClock

__all__ = ["CaptureClockConfig", "CaptureTimes", "Stamp", "producer_wall_ns"]

_PRFT = struct.Struct("<qi")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureClockConfig:
    """What is believed of a camera's clocks."""

    median_packets: int = 31
    """Packets over which the offset of the camera's wall clock is a median."""
    max_skew_s: float = 2.0
    """A camera whose wall clock is further from ours than this, all the time, is not believed."""
    max_age_s: float = 10.0
    """A computed capture time further from arrival than this means that the timeline jumped:
    everything learnt is forgotten."""
    drift_window_s: float = 30.0
    """The smallest delay is the minimum over the last one to two of these."""

    def __post_init__(self) -> None:
        if self.median_packets < 1:
            raise ConfigError(f"median_packets is {self.median_packets}; it must be 1 or more.")
        for name in ("max_skew_s", "max_age_s", "drift_window_s"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """A capture time and how it was found."""

    captured_at_ns: int
    """UTC nanoseconds since 1970."""
    clock: CaptureClock


class CaptureTimes:
    """Capture times of one connection. Make a new one for the next connection."""

    def __init__(self, config: CaptureClockConfig | None = None) -> None:
        self._config = config or CaptureClockConfig()
        self._offsets: deque[int] = deque(maxlen=self._config.median_packets)
        self._skews: deque[int] = deque(maxlen=self._config.median_packets)
        self._delay = _SmallestDelay(_ns(self._config.drift_window_s))
        self._last_pts_ns: int | None = None

    def anchor(self, *, pts_s: float, wall_ns: int, arrived_at_ns: int) -> None:
        """The camera says that the packet with `pts_s` was taken at `wall_ns` (UTC)."""
        self._offsets.append(wall_ns - _ns(pts_s))
        self._skews.append(arrived_at_ns - wall_ns)

    def stamp(self, *, pts_s: float | None, arrived_ns: int, arrived_at_ns: int) -> Stamp:
        """Capture time of a decoded picture.

        Args:
            pts_s: its presentation time, seconds on the source's clock; None if it has none.
            arrived_ns: monotonic time at which the decoder handed it out.
            arrived_at_ns: the same moment in UTC.
        """
        pts_ns = None if pts_s is None else _ns(pts_s)
        if pts_ns is None or pts_ns == self._last_pts_ns:
            return Stamp(captured_at_ns=arrived_at_ns, clock="arrival")
        self._last_pts_ns = pts_ns
        found = self._from_camera(pts_ns, arrived_at_ns)
        if found is not None:
            return found
        return Stamp(captured_at_ns=arrived_at_ns - self._age(pts_ns, arrived_ns), clock="media")

    def _from_camera(self, pts_ns: int, arrived_at_ns: int) -> Stamp | None:
        limit = _ns(self._config.max_skew_s)
        if not self._offsets or min(abs(skew) for skew in self._skews) > limit:
            return None
        offset = sorted(self._offsets)[len(self._offsets) // 2]
        captured = pts_ns + offset
        if not -limit <= arrived_at_ns - captured <= _ns(self._config.max_age_s):
            self._offsets.clear()
            self._skews.clear()
            return None
        return Stamp(captured_at_ns=captured, clock="rtcp")

    def _age(self, pts_ns: int, arrived_ns: int) -> int:
        """How much later than the least delayed picture this one came, nanoseconds."""
        delay = arrived_ns - pts_ns
        age = delay - self._delay.smallest(delay, at_ns=arrived_ns)
        if age > _ns(self._config.max_age_s):
            self._delay = _SmallestDelay(_ns(self._config.drift_window_s))
            age = delay - self._delay.smallest(delay, at_ns=arrived_ns)
        return age


class _SmallestDelay:
    """Minimum over the last one to two windows, in constant memory."""

    def __init__(self, window_ns: int) -> None:
        self._window_ns = window_ns
        self._started_ns: int | None = None
        self._before: int | None = None
        self._now: int | None = None

    def smallest(self, delay: int, *, at_ns: int) -> int:
        if self._started_ns is None or at_ns - self._started_ns >= self._window_ns:
            self._started_ns, self._before, self._now = at_ns, self._now, None
        self._now = delay if self._now is None else min(self._now, delay)
        return self._now if self._before is None else min(self._before, self._now)


def producer_wall_ns(side_data: bytes) -> int | None:
    """`prft` side data (int64 microseconds since 1970, int32 flags) -> UTC nanoseconds."""
    if len(side_data) < _PRFT.size:
        return None
    wall_us, _flags = _PRFT.unpack_from(side_data)
    return int(wall_us) * 1000 if wall_us > 0 else None


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
