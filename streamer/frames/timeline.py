"""Source timestamps -> seconds on one steady line. No clock of its own: times come in.

Cameras send pictures without a timestamp (the first of every RTSP session), with the same one
twice, with one wild value in between, or with a clock that somebody has just set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Place", "Timeline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a picture lies."""

    time_s: float
    """Seconds since the first picture of this timeline."""
    is_new_timeline: bool = False
    """The source's clock jumped for good; `time_s` counts from here."""


class Timeline:
    """Places pictures by their timestamp, and by their arrival where there is no usable one.

    Args:
        back_s: how far a timestamp may step back, seconds.
        ahead_s: how far it may step ahead, seconds.
        strays: so many timestamps in a row outside of that are a new timeline.
    """

    def __init__(self, *, back_s: float, ahead_s: float, strays: int) -> None:
        self._back_s = back_s
        self._ahead_s = ahead_s
        self._strays_allowed = strays
        self.restart()

    def restart(self) -> None:
        """Forget everything: the next picture is at 0 s."""
        self._newest_s: float | None = None
        self._offset_s: float | None = None
        self._last_pts_s: float | None = None
        self._last_arrived_s: float | None = None
        self._is_estimated = False
        self._strays = 0

    def place(self, pts_s: float | None, *, arrived_s: float | None) -> Place | None:
        """Place the next picture.

        Args:
            pts_s: its timestamp on the source's clock, seconds; None or not finite: it has none.
            arrived_s: when it came, seconds on any steady clock; None: it says nothing (a file,
                read as fast as we like), so a picture without a timestamp adds no time.

        Returns:
            Its place, or None for a stray to be ignored.
        """
        if pts_s is not None and not math.isfinite(pts_s):
            pts_s = None
        if self._newest_s is None:
            return self._begin(pts_s, arrived_s=arrived_s, is_new_timeline=False)
        by_arrival_s = self._newest_s + self._elapsed_s(arrived_s)
        if pts_s is None or pts_s == self._last_pts_s:
            return self._accept(by_arrival_s, pts_s=pts_s, arrived_s=arrived_s, is_estimated=True)
        if self._offset_s is None or (
            self._is_estimated
            and arrived_s is not None
            and abs(pts_s - self._offset_s - by_arrival_s) > self._back_s
        ):
            self._offset_s = pts_s - by_arrival_s
        time_s = pts_s - self._offset_s
        if -self._back_s <= time_s - self._newest_s <= self._ahead_s:
            return self._accept(time_s, pts_s=pts_s, arrived_s=arrived_s, is_estimated=False)
        self._strays += 1
        if self._strays < self._strays_allowed:
            return None
        self.restart()
        return self._begin(pts_s, arrived_s=arrived_s, is_new_timeline=True)

    def _elapsed_s(self, arrived_s: float | None) -> float:
        if arrived_s is None or self._last_arrived_s is None:
            return 0.0
        return max(0.0, arrived_s - self._last_arrived_s)

    def _begin(
        self, pts_s: float | None, *, arrived_s: float | None, is_new_timeline: bool
    ) -> Place:
        self._offset_s = pts_s
        self._newest_s = 0.0
        self._last_pts_s = pts_s
        self._last_arrived_s = arrived_s
        self._is_estimated = pts_s is None
        return Place(time_s=0.0, is_new_timeline=is_new_timeline)

    def _accept(
        self, time_s: float, *, pts_s: float | None, arrived_s: float | None, is_estimated: bool
    ) -> Place:
        assert self._newest_s is not None
        self._strays = 0
        self._newest_s = max(self._newest_s, time_s)
        self._last_pts_s = self._last_pts_s if pts_s is None else pts_s
        self._last_arrived_s = arrived_s
        self._is_estimated = is_estimated
        return Place(time_s=time_s)
