"""When was this picture taken? Presentation times -> UTC. Sans-I/O: all times come in.

Three ways, the best one that can be believed:

- ``rtcp``: the camera's own wall clock. FFmpeg attaches it to packets as ``prft`` side data once
  an RTCP sender report has come (`streamer.sources.clock_reports`).
- ``media``: presentation time plus the smallest delay seen between it and arrival
  (`streamer.sources.clock_delay`).
- ``arrival``: no presentation time, one that repeats, or a stray: the time at which it came.

Delays, drift and the order of capture times live on the monotonic clock; the wall clock only labels
them. So when somebody sets our clock, capture times follow in one step, nothing looks late, and
the camera's wall clock is measured against the new time.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from streamer.records import CaptureClock, ClockReading, ClockWhy
from streamer.sources.clock_config import CaptureClockConfig
from streamer.sources.clock_delay import Drift, SmallestDelay
from streamer.sources.clock_reports import SenderReports

__all__ = ["CaptureTimes", "Stamp", "producer_wall_ns"]

_PRFT = struct.Struct("<qi")
# A crystal is hardly worse; taken while the camera's own drift is not known.
_ASSUMED_PPM = 200.0
_BELIEVED_AGAIN = 0.75
# Beyond this many seconds (300 years) a presentation time is no time, and no float is exact.
_MAX_PTS_S = 1e10


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """A capture time and how it was found."""

    captured_at_ns: int
    """UTC nanoseconds since 1970."""
    clock: CaptureClock


@dataclass(frozen=True, slots=True)
class _Found:
    """A capture time on the monotonic clock."""

    captured_ns: int
    clock: CaptureClock
    why: ClockWhy


class CaptureTimes:
    """Capture times of one connection. Make a new one for the next connection.

    As long as nobody sets our own clock they never go back, are not older than `max_age_s` at
    arrival and not ahead of it by more than `max_skew_s`. A better clock that puts pictures
    further back (``rtcp`` after ``media``: by the network's delay) is approached at half speed.
    """

    def __init__(self, config: CaptureClockConfig | None = None) -> None:
        self.reading = ClockReading(clock="arrival")
        """As of the newest picture; replaced as a whole, so that other threads may look."""
        self._config = config or CaptureClockConfig()
        self._max_age_ns = _ns(self._config.max_age_s)
        self._reports = SenderReports(self._config)
        self._begin()
        self._is_skewed = False
        self._strays: list[int] = []
        self._last_pts_ns: int | None = None
        self._last_captured_ns: int | None = None
        self._missing = self._repeated = self._outliers = self._jumps = 0

    def anchor(self, *, pts_s: float, wall_ns: int, arrived_ns: int) -> None:
        """The camera says that the packet with `pts_s` was taken at `wall_ns` (UTC).

        Args:
            arrived_ns: monotonic time at which the packet came.
        """
        if abs(pts_s) <= _MAX_PTS_S:
            self._reports.add(wall_ns - _ns(pts_s), at_ns=arrived_ns)

    def stamp(self, *, pts_s: float | None, arrived_ns: int, arrived_at_ns: int) -> Stamp:
        """Capture time of a decoded picture.

        Args:
            pts_s: its presentation time, seconds on the source's clock; None or not finite if it
                has none.
            arrived_ns: monotonic time at which the decoder handed it out.
            arrived_at_ns: the same moment in UTC.
        """
        host_ns = arrived_at_ns - arrived_ns
        pts_ns = None if pts_s is None or not abs(pts_s) <= _MAX_PTS_S else _ns(pts_s)
        found = self._find(pts_ns, arrived_ns=arrived_ns, host_ns=host_ns)
        step_ns = self._step(pts_ns)
        captured_ns = self._in_order(found.captured_ns, step_ns=step_ns, arrived_ns=arrived_ns)
        self.reading = self._read(found, arrived_ns=arrived_ns, host_ns=host_ns)
        return Stamp(captured_at_ns=captured_ns + host_ns, clock=found.clock)

    def _step(self, pts_ns: int | None) -> int:
        """From the presentation time before to this one, nanoseconds; 0 if either is missing."""
        before_ns = self._last_pts_ns
        if pts_ns is None:
            return 0
        self._last_pts_ns = pts_ns
        return 0 if before_ns is None else pts_ns - before_ns

    def _find(self, pts_ns: int | None, *, arrived_ns: int, host_ns: int) -> _Found:
        if pts_ns is None:
            self._missing += 1
            return _Found(arrived_ns, "arrival", "no_pts")
        if pts_ns == self._last_pts_ns:
            self._repeated += 1
            return _Found(arrived_ns, "arrival", "repeated_pts")
        delay_ns = arrived_ns - pts_ns
        if self._is_stray(delay_ns):
            return _Found(arrived_ns, "arrival", "jumped")
        age_ns = delay_ns - self._delay.add(delay_ns, at_ns=arrived_ns)
        self._drift.add(delay_ns, at_ns=arrived_ns)
        offset_ns = self._reports.offset_ns
        why = self._verdict(arrived_ns=arrived_ns, host_ns=host_ns)
        if offset_ns is None or why in ("no_reports", "skewed"):
            return _Found(arrived_ns - age_ns, "media", why)
        return _Found(pts_ns + offset_ns - host_ns, "rtcp", why)

    def _is_stray(self, delay_ns: int) -> bool:
        """Its time fits neither to those before nor, yet, to a new line of time."""
        smallest_ns = self._delay.value
        if smallest_ns is None or abs(delay_ns - smallest_ns) <= self._max_age_ns:
            self._outliers += len(self._strays)
            self._strays.clear()
            return False
        if self._strays and abs(delay_ns - self._strays[-1]) > self._max_age_ns:
            self._outliers += len(self._strays)
            self._strays.clear()
        self._strays.append(delay_ns)
        if len(self._strays) < self._config.strays_for_jump:
            return True
        self._jumps += 1
        self._strays.clear()
        self._begin()
        self._reports.forget()
        return False

    def _begin(self) -> None:
        """A line of time begins: what was learnt of the one before means nothing here."""
        self._delay = SmallestDelay(_ns(self._config.window_s))
        self._drift = Drift(_ns(self._config.drift_window_s))

    def _verdict(self, *, arrived_ns: int, host_ns: int) -> ClockWhy:
        """May the camera's wall clock be believed?"""
        skew_ns = self._skew_ns(host_ns)
        if skew_ns is None or not self._is_fresh(arrived_ns):
            return "no_reports"
        limit_ns = _ns(self._config.max_skew_s)
        self._is_skewed = abs(skew_ns) > limit_ns * (_BELIEVED_AGAIN if self._is_skewed else 1)
        if self._is_skewed:
            return "skewed"
        return "jumped" if self._reports.is_doubted else "ok"

    def _skew_ns(self, host_ns: int) -> int | None:
        """Camera's wall clock minus ours, when the least delayed picture arrived."""
        offset_ns, smallest_ns = self._reports.offset_ns, self._delay.value
        if offset_ns is None or smallest_ns is None:
            return None
        return offset_ns - smallest_ns - host_ns

    def _is_fresh(self, arrived_ns: int) -> bool:
        newest_ns = self._reports.newest_at_ns
        if newest_ns is None:
            return False
        ppm = _ASSUMED_PPM if self._drift.ppm is None else abs(self._drift.ppm)
        return (arrived_ns - newest_ns) * ppm / 1e6 <= _ns(self._config.max_drift_error_s)

    def _in_order(self, captured_ns: int, *, step_ns: int, arrived_ns: int) -> int:
        """Not before the picture before it, and at least half the time after it that the source
        says, as far as that is not later than its arrival."""
        captured_ns = max(captured_ns, arrived_ns - self._max_age_ns)
        last_ns = self._last_captured_ns
        if last_ns is not None:
            slowly_ns = last_ns + max(0, step_ns) // 2
            captured_ns = max(last_ns, captured_ns, min(slowly_ns, arrived_ns))
        self._last_captured_ns = captured_ns
        return captured_ns

    def _read(self, found: _Found, *, arrived_ns: int, host_ns: int) -> ClockReading:
        skew_ns, newest_ns = self._skew_ns(host_ns), self._reports.newest_at_ns
        return ClockReading(
            clock=found.clock,
            is_believed=found.clock == "rtcp",
            why=found.why,
            offset_s=None if skew_ns is None else round(skew_ns / 1e9, 6),
            drift_ppm=self._drift.ppm,
            reports=self._reports.seen,
            report_age_s=None if newest_ns is None else round((arrived_ns - newest_ns) / 1e9, 3),
            outliers=self._outliers + self._reports.outliers,
            jumps=self._jumps + self._reports.jumps,
            missing_pts=self._missing,
            repeated_pts=self._repeated,
        )


def producer_wall_ns(side_data: bytes) -> int | None:
    """`prft` side data (int64 microseconds since 1970, int32 flags) -> UTC nanoseconds."""
    if len(side_data) < _PRFT.size:
        return None
    wall_us, _flags = _PRFT.unpack_from(side_data)
    return int(wall_us) * 1000 if wall_us > 0 else None


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
