"""Whether a camera's wall clock is believed, said once per change and never per picture."""

from __future__ import annotations

from typing import Any

from streamer.records import ClockReading, SourceState

__all__ = ["ClockWatch", "clock_fields"]


class ClockWatch:
    """Judges one reading after the other. A moment without a verdict (no sender report yet after a
    reconnect, a picture without a time) changes nothing."""

    def __init__(self) -> None:
        self._is_skewed = False

    def look(self, reading: ClockReading | None) -> SourceState | None:
        """What is to be said now, with reason `clock_skewed` or `clock_ok`; mostly nothing."""
        if reading is None or reading.why not in ("ok", "skewed"):
            return None
        was_skewed, self._is_skewed = self._is_skewed, reading.why == "skewed"
        if self._is_skewed == was_skewed:
            return None
        if not self._is_skewed:
            return SourceState(
                state="live", reason="clock_ok", detail="The camera's clock is right again."
            )
        return SourceState(state="live", reason="clock_skewed", detail=_detail(reading))


def clock_fields(reading: ClockReading | None) -> dict[str, Any]:
    """A reading under the names of the status, of the API and of the feed's `stats`; all None
    without one."""
    return {
        "clock": reading and reading.clock,
        "clock_why": reading and reading.why,
        "clock_offset_s": reading and reading.offset_s,
        "clock_drift_ppm": reading and reading.drift_ppm,
        "clock_reports": reading and reading.reports,
        "clock_report_age_s": reading and reading.report_age_s,
        "clock_outliers": reading and reading.outliers,
        "clock_jumps": reading and reading.jumps,
        "pts_missing": reading and reading.missing_pts,
        "pts_repeated": reading and reading.repeated_pts,
    }


def _detail(reading: ClockReading) -> str:
    offset_s = reading.offset_s or 0.0
    side = "ahead of" if offset_s > 0 else "behind"
    return (
        f"The camera's clock is {abs(offset_s):.1f} s {side} ours, so capture times are counted"
        " from arrival. Set the camera's time by NTP, and check that this machine's is right."
    )
