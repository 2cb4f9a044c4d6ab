"""A camera's clocks on paper: what a decoder would hand out, without a camera or a wait."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from streamer.sources.capture_clock import CaptureTimes, Stamp

__all__ = ["START", "CameraClock", "S", "Shot"]

S = 1_000_000_000
START = 1_800_000_000 * S
"""UTC at the beginning; our monotonic clock is at 0 then."""


@dataclass(frozen=True, kw_only=True)
class Shot:
    """One picture that was stamped."""

    number: int
    taken_ns: int
    """UTC at which it was really taken."""
    arrived_at_ns: int
    """The same of its arrival, on our wall clock."""
    pts_s: float | None
    stamp: Stamp

    @property
    def error_s(self) -> float:
        """Of the capture time."""
        return (self.stamp.captured_at_ns - self.taken_ns) / S


@dataclass(kw_only=True)
class CameraClock:
    """Takes a picture every `period_s` and says now and then what its wall clock shows."""

    period_s: float = 1 / 15
    latency_s: Callable[[float], float] = lambda at_s: 0.2
    """Network and decoder, by the second."""
    drift_ppm: float = 0.0
    """Of its media clock."""
    ahead_s: Callable[[float], float] = lambda at_s: 0.0
    """Its wall clock before the true time."""
    first_report_s: float | None = 0.0
    """None: it never says anything."""
    report_every_s: float = 5.0
    last_report_s: float = float("inf")
    pts_at: Callable[[float, float], float | None] = lambda at_s, pts_s: pts_s
    """What it says in place of its media time."""
    ours_ahead_s: Callable[[float], float] = lambda at_s: 0.0
    """How far our wall clock was set."""
    times: CaptureTimes = field(default_factory=CaptureTimes)

    def shots(self, until_s: float) -> Iterator[Shot]:
        """Pictures in order, each told to `times` as the decoder would."""
        report: tuple[float, float] | None = None
        next_report_s = self.first_report_s
        number = said = 0
        while (at_s := number * self.period_s) < until_s:
            media_s = at_s * (1 + self.drift_ppm / 1e6)
            pts_s = self.pts_at(at_s, media_s)
            if next_report_s is not None and at_s >= next_report_s and pts_s is not None:
                if at_s <= self.last_report_s:
                    wall_s = START / S + at_s + self.ahead_s(at_s)
                    # RTP counts 90 kHz: a report is true to 11 us.
                    said += 1
                    report = wall_s, pts_s + said % 2 / 90_000
                next_report_s += self.report_every_s
            yield self._shot(number, at_s=at_s, pts_s=pts_s, report=report)
            number += 1

    def _shot(
        self, number: int, *, at_s: float, pts_s: float | None, report: tuple[float, float] | None
    ) -> Shot:
        arrived_ns = round((at_s + self.latency_s(at_s)) * S)
        if report is not None and pts_s is not None and math.isfinite(pts_s):
            wall_us = round((report[0] - START / S + pts_s - report[1]) * 1e6) + START // 1000
            self.times.anchor(pts_s=pts_s, wall_ns=wall_us * 1000, arrived_ns=arrived_ns)
        arrived_at_ns = START + arrived_ns + round(self.ours_ahead_s(at_s) * S)
        return Shot(
            number=number,
            taken_ns=START + round(at_s * S),
            arrived_at_ns=arrived_at_ns,
            pts_s=pts_s,
            stamp=self.times.stamp(pts_s=pts_s, arrived_ns=arrived_ns, arrived_at_ns=arrived_at_ns),
        )
