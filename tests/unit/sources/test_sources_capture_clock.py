"""Presentation times -> UTC, by the best clock that can be believed."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import ConfigError
from streamer.sources.capture_clock import CaptureTimes, Stamp, producer_wall_ns
from streamer.sources.clock_config import CaptureClockConfig

pytestmark = pytest.mark.unit

S = 1_000_000_000
START = 1_800_000_000 * S
PERIOD = S // 15


def pts(number: int) -> float:
    return number * PERIOD / S


def stamp_of(
    times: CaptureTimes, *, pts_s: float | None, arrived_at_ns: int, clock_set_by: int = 0
) -> Stamp:
    """Both of our clocks run evenly, unless somebody set the one on the wall."""
    return times.stamp(
        pts_s=pts_s, arrived_ns=arrived_at_ns - START, arrived_at_ns=arrived_at_ns + clock_set_by
    )


def test_first_picture_without_time_then_media() -> None:
    times = CaptureTimes()
    first = stamp_of(times, pts_s=None, arrived_at_ns=START)
    second = stamp_of(times, pts_s=0.0, arrived_at_ns=START + 5)
    assert (first.clock, first.captured_at_ns) == ("arrival", START)
    assert (second.clock, second.captured_at_ns) == ("media", START + 5)


def test_repeated_time_is_not_believed() -> None:
    times = CaptureTimes()
    stamp_of(times, pts_s=1.0, arrived_at_ns=START)
    again = stamp_of(times, pts_s=1.0, arrived_at_ns=START + S)
    assert (again.clock, again.captured_at_ns) == ("arrival", START + S)


@given(delays=st.lists(st.integers(0, 2 * S), min_size=1, max_size=60))
def test_media_goes_by_the_least_delayed_picture_and_never_back(delays: list[int]) -> None:
    times = CaptureTimes()
    smallest, before = max(delays), 0
    for number, delay in enumerate(delays):
        taken = START + number * PERIOD
        stamp = stamp_of(times, pts_s=pts(number), arrived_at_ns=taken + delay)
        smallest = min(smallest, delay)
        assert stamp.clock == "media"
        assert taken + smallest - 100 <= stamp.captured_at_ns <= max(taken + delay, before)
        half_a_period_on = min(before + PERIOD // 2, taken + delay)
        assert stamp.captured_at_ns >= max(before, half_a_period_on - 100)
        before = stamp.captured_at_ns


def test_media_keeps_the_spacing_of_the_pictures() -> None:
    times = CaptureTimes()
    for number in range(60):
        taken = START + number * PERIOD
        late = S // 10 + (number % 7) * S // 20
        stamp = stamp_of(times, pts_s=pts(number), arrived_at_ns=taken + late)
        assert stamp.captured_at_ns == pytest.approx(taken + S // 10, abs=100)


def test_media_follows_a_drifting_camera() -> None:
    times = CaptureTimes()
    age = 0
    for number in range(0, 40_000, 10):  # 44 minutes at 15 fps, the camera 0.1 % slow
        arrived = START + round(number * PERIOD * 1.001)
        age = arrived - stamp_of(times, pts_s=pts(number), arrived_at_ns=arrived).captured_at_ns
    assert 0 <= age < S // 10


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_media_starts_over_after_a_jump(jump_s: float) -> None:
    times = CaptureTimes()
    for number in range(30):
        stamp_of(times, pts_s=pts(number), arrived_at_ns=START + number * PERIOD)
    for number in range(30, 60):
        arrived = START + number * PERIOD
        stamp = stamp_of(times, pts_s=pts(number) + jump_s, arrived_at_ns=arrived)
        assert stamp.captured_at_ns == pytest.approx(arrived, abs=100)


@pytest.mark.parametrize("by_s", [-3600, -3, 3, 3600])
def test_media_follows_at_once_when_our_own_clock_is_set(by_s: int) -> None:
    times = CaptureTimes()
    for number in range(60):
        taken = START + number * PERIOD
        late = S // 2 if number % 2 else S // 10
        moved = by_s * S if number >= 30 else 0
        stamp = stamp_of(times, pts_s=pts(number), arrived_at_ns=taken + late, clock_set_by=moved)
        assert stamp.captured_at_ns == pytest.approx(taken + S // 10 + moved, abs=100)


def test_one_wrong_time_does_not_spoil_the_rest() -> None:
    times = CaptureTimes()
    for number in range(60):
        arrived = START + number * PERIOD
        wrong = 5000.0 if number == 30 else 0.0
        stamp = stamp_of(times, pts_s=pts(number) + wrong, arrived_at_ns=arrived)
        assert stamp.captured_at_ns == pytest.approx(arrived, abs=100)


def with_sender_reports(times: CaptureTimes, *, count: int, camera_ahead: int = 0) -> list:
    stamps = []
    for number in range(count):
        taken = START + number * PERIOD
        off_by_one = PERIOD if number % 9 == 4 else 0  # the parser attached the next packet's time
        wall = taken + off_by_one + camera_ahead
        times.anchor(pts_s=pts(number), wall_ns=wall, arrived_ns=taken + S // 5 - START)
        stamps.append(stamp_of(times, pts_s=pts(number), arrived_at_ns=taken + S // 5))
    return stamps


def test_camera_clock_wins_and_the_median_hides_packets_off_by_one() -> None:
    stamps = with_sender_reports(CaptureTimes(), count=60)
    assert {stamp.clock for stamp in stamps[2:]} == {"rtcp"}
    for number, stamp in list(enumerate(stamps))[12:]:
        assert stamp.captured_at_ns == pytest.approx(START + number * PERIOD, abs=100)


@pytest.mark.parametrize("ahead_s", [-3600, -3, 3, 3600])
def test_a_wrong_camera_clock_is_not_believed(ahead_s: int) -> None:
    stamps = with_sender_reports(CaptureTimes(), count=60, camera_ahead=ahead_s * S)
    assert {stamp.clock for stamp in stamps} == {"media"}


def test_a_late_burst_does_not_discredit_the_camera_clock() -> None:
    times = CaptureTimes()
    with_sender_reports(times, count=40)
    taken = START + 40 * PERIOD
    times.anchor(pts_s=pts(40), wall_ns=taken, arrived_ns=taken + 4 * S - START)
    stamp = stamp_of(times, pts_s=pts(40), arrived_at_ns=taken + 4 * S)
    assert stamp.clock == "rtcp"
    assert stamp.captured_at_ns == pytest.approx(taken, abs=100)


def test_a_jump_of_the_timeline_drops_the_camera_clock_until_its_next_word() -> None:
    times = CaptureTimes()
    with_sender_reports(times, count=40)
    arrived = START + 40 * PERIOD + S // 5
    clocks = []
    for number in range(9):
        later, pts_s = arrived + number * PERIOD, pts(number) - 60.0
        if number >= 3:
            times.anchor(pts_s=pts_s, wall_ns=later, arrived_ns=later - START)
        clocks.append(stamp_of(times, pts_s=pts_s, arrived_at_ns=later).clock)
    assert clocks == ["arrival"] * 2 + ["media"] * 3 + ["rtcp"] * 4


def test_side_data() -> None:
    packed = struct.pack("<qi", 1_800_000_000_123_456, 0)
    assert producer_wall_ns(packed) == 1_800_000_000_123_456_000
    assert producer_wall_ns(packed + b"\0\0\0\0") == 1_800_000_000_123_456_000
    assert producer_wall_ns(b"") is None
    assert producer_wall_ns(struct.pack("<qi", 0, 0)) is None


@pytest.mark.parametrize(
    "name",
    ["median_packets", "max_skew_s", "max_age_s", "window_s", "drift_window_s", "strays_for_jump"],
)
def test_wrong_settings(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        CaptureClockConfig(**{name: 0})


def test_a_skew_beyond_the_largest_age_is_no_setting() -> None:
    with pytest.raises(ConfigError, match="at most max_age_s"):
        CaptureClockConfig(max_skew_s=11.0)
