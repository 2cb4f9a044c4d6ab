"""Source timestamps on one steady line."""

from __future__ import annotations

import math

import pytest

from streamer.frames.timeline import Timeline

pytestmark = pytest.mark.unit


def make() -> Timeline:
    return Timeline(back_s=0.125, ahead_s=5.0, strays=3)


def test_good_timestamps_are_kept_relative_to_the_first() -> None:
    timeline = make()
    places = [timeline.place(100 + n / 4, arrived_s=n) for n in range(4)]
    assert [place and place.time_s for place in places] == [0.0, 0.25, 0.5, 0.75]


@pytest.mark.parametrize("missing", [None, math.nan, math.inf])
def test_missing_timestamp_falls_back_to_arrival(missing: float | None) -> None:
    timeline = make()
    timeline.place(10.0, arrived_s=50.0)
    place = timeline.place(missing, arrived_s=50.2)
    assert place is not None and place.time_s == pytest.approx(0.2)


def test_repeated_timestamp_falls_back_to_arrival_and_back() -> None:
    timeline = make()
    timeline.place(10.0, arrived_s=0.0)
    repeated = timeline.place(10.0, arrived_s=1.0)
    later = timeline.place(10.1, arrived_s=1.1)
    assert repeated is not None and repeated.time_s == pytest.approx(1.0)
    assert later is not None and later.time_s == pytest.approx(1.1)


def test_first_picture_without_timestamp_then_real_ones() -> None:
    """Every RTSP session starts like this."""
    timeline = make()
    timeline.place(None, arrived_s=7.0)
    times = [timeline.place(500 + n / 15, arrived_s=7 + (n + 1) / 15) for n in range(3)]
    assert [place and place.time_s for place in times] == pytest.approx([1 / 15, 2 / 15, 3 / 15])


def test_small_step_back_is_tolerated() -> None:
    timeline = make()
    timeline.place(10.0, arrived_s=0.0)
    place = timeline.place(9.9, arrived_s=0.1)
    assert place is not None and not place.is_new_timeline


def test_two_strays_are_ignored_and_forgotten() -> None:
    timeline = make()
    timeline.place(10.0, arrived_s=0.0)
    assert timeline.place(99.0, arrived_s=0.1) is None
    assert timeline.place(3.0, arrived_s=0.2) is None
    back = timeline.place(10.25, arrived_s=0.3)
    assert back is not None and back.time_s == 0.25
    assert timeline.place(99.0, arrived_s=0.4) is None


def test_three_strays_in_a_row_are_a_new_timeline() -> None:
    timeline = make()
    timeline.place(10.0, arrived_s=0.0)
    places = [timeline.place(9000 + n / 4, arrived_s=n) for n in range(4)]
    assert places[:2] == [None, None]
    assert places[2] is not None and places[2].is_new_timeline and places[2].time_s == 0.0
    assert places[3] is not None and not places[3].is_new_timeline and places[3].time_s == 0.25


def test_a_new_timeline_forgets_the_strays_before_it() -> None:
    timeline = make()
    timeline.place(10.0, arrived_s=0.0)
    for n in range(3):
        timeline.place(9000 + n / 4, arrived_s=n)
    assert timeline.place(10.0, arrived_s=3.0) is None
