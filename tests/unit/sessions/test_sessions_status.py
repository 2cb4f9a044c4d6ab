"""The flat form of a status."""

from __future__ import annotations

import pytest

from streamer.records import ClockReading, SourceState
from streamer.sessions.status import Counts, SessionStatus

pytestmark = pytest.mark.unit


def test_a_status_is_flat_json() -> None:
    status = SessionStatus(
        state=SourceState(state="stalled", reason="no_frames"),
        source="rtsp://***@cam",
        owner="here",
        fps_in=15.0,
        fps_used=4.0,
        counts=Counts(pictures=9, used=2),
        clips_encoded=1,
        clips_published=1,
        clips_superseded=0,
        clips_rejected=0,
        lag_s=None,
        reading=ClockReading(clock="rtcp", why="ok", offset_s=-0.1, reports=3),
    )
    flat = status.as_json()
    assert (flat["state"], flat["reason"], flat["retry_in_s"]) == ("stalled", "no_frames", None)
    assert (flat["pictures"], flat["used"], flat["lag_s"]) == (9, 2, None)
    assert (flat["clock"], flat["clock_why"], flat["clock_offset_s"]) == ("rtcp", "ok", -0.1)
    assert (flat["clock_drift_ppm"], flat["clock_reports"], flat["pts_missing"]) == (None, 3, 0)
    assert not any(isinstance(value, dict) for value in flat.values())


def test_without_a_picture_the_clock_is_not_known() -> None:
    status = SessionStatus(
        state=SourceState(state="starting"),
        source="",
        owner="here",
        fps_in=None,
        fps_used=None,
        clips_encoded=0,
        clips_published=0,
        clips_superseded=0,
        clips_rejected=0,
        lag_s=None,
    )
    flat = status.as_json()
    assert {flat[name] for name in flat if name.startswith(("clock", "pts"))} == {None}
