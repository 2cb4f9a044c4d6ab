"""How a source's clocks stand, as the API and the feed's `stats` show it."""

from __future__ import annotations

import pytest

from streamer.gateway.stats import StatsDesk
from streamer.records import ClockReading
from streamer.sessions.clock_watch import clock_fields

pytestmark = pytest.mark.unit

READING = ClockReading(
    clock="media", why="skewed", offset_s=3600.2, drift_ppm=-12.5, reports=4, report_age_s=1.5
)


async def test_the_clock_of_a_running_session_is_shown(gateway, http):
    await gateway.stream()
    await gateway.report({"state": "live", **clock_fields(READING)})
    view = (await http.get("/v1/streams/cam")).json()
    assert (view["clock"], view["clock_why"]) == ("media", "skewed")
    assert (view["clock_offset_s"], view["clock_drift_ppm"]) == (3600.2, -12.5)
    assert view["clock_report_age_s"] == 1.5
    assert view["clock_counts"] == {
        "clock_reports": 4,
        "clock_outliers": 0,
        "clock_jumps": 0,
        "pts_missing": 0,
        "pts_repeated": 0,
    }
    stats = await StatsDesk(gateway.store, "cam").stats()
    assert (stats.clock, stats.clock_why) == ("media", "skewed")
    assert (stats.clock_offset_s, stats.clock_drift_ppm) == (3600.2, -12.5)


async def test_before_the_first_picture_nothing_is_known(gateway, http):
    await gateway.stream()
    await gateway.report({"state": "starting", **clock_fields(None)})
    view = (await http.get("/v1/streams/cam")).json()
    assert (view["clock"], view["clock_why"], view["clock_counts"]) == (None, None, None)
    assert (await StatsDesk(gateway.store, "cam").stats()).clock is None
