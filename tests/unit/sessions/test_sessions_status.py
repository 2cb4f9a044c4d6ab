"""Rates and the flat form of a status."""

from __future__ import annotations

import pytest

from streamer.records import SourceState
from streamer.sessions.status import Counts, RateMeter, SessionStatus

pytestmark = pytest.mark.unit

S = 10**9


def test_a_rate_is_that_of_the_last_full_span() -> None:
    meter = RateMeter(span_s=2.0)
    seen = [
        meter.rate(total, now_ns=at_ns)
        for total, at_ns in [
            (0, 40 * S),
            (100, 50 * S),
            (390, 52 * S),  # a burst at the start tells nothing
            (405, 53 * S),
            (420, 54 * S),  # 30 in 2 s
            (999, 55 * S),
            (420, 58 * S),  # a silent camera
        ]
    ]
    assert seen == [None, None, None, None, 15.0, 15.0, 0.0]


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
    )
    flat = status.as_json()
    assert (flat["state"], flat["reason"], flat["retry_in_s"]) == ("stalled", "no_frames", None)
    assert (flat["pictures"], flat["used"], flat["lag_s"]) == (9, 2, None)
    assert not any(isinstance(value, dict) for value in flat.values())
