"""What is known of a camera's clocks, and capture times while they go wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from camera_clock import START, CameraClock, S, Shot
from hypothesis import given
from hypothesis import strategies as st

from streamer.sources.capture_clock import CaptureTimes

pytestmark = pytest.mark.unit

HOUR = 3600.0
DRIFT_PPM = 20.0
"""How well the drift is known with ten pictures in a window, each late by up to 0.2 s."""


def from_second(second: float, value: float, before: float = 0.0) -> Callable[[float], float]:
    return lambda at_s: value if at_s >= second else before


def between(first_s: float, end_s: float, value: float) -> Callable[[float], float]:
    return lambda at_s: value if first_s <= at_s < end_s else 0.0


def in_order(shots: list[Shot]) -> bool:
    return all(a.stamp.captured_at_ns <= b.stamp.captured_at_ns for a, b in pairwise(shots))


def test_a_camera_whose_clock_is_right() -> None:
    camera = CameraClock()
    shots = list(camera.shots(30.0))
    reading = camera.times.reading
    assert (reading.clock, reading.is_believed, reading.why) == ("rtcp", True, "ok")
    assert reading.offset_s == pytest.approx(-0.2, abs=1e-4)  # the network's part
    assert (reading.reports, reading.outliers, reading.jumps) == (6, 0, 0)
    assert reading.report_age_s == pytest.approx(4.7, abs=0.3)
    assert max(abs(shot.error_s) for shot in shots[20:]) < 1e-4
    assert {shot.stamp.clock for shot in shots[3:]} == {"rtcp"}


def test_a_camera_that_says_nothing() -> None:
    camera = CameraClock(first_report_s=None)
    shots = list(camera.shots(10.0))
    reading = camera.times.reading
    assert (reading.clock, reading.is_believed, reading.why) == ("media", False, "no_reports")
    assert (reading.offset_s, reading.report_age_s, reading.reports) == (None, None, 0)
    assert {round(shot.error_s, 4) for shot in shots} == {0.2}


@pytest.mark.parametrize("ahead_s", [-HOUR, -2.5, 2.5, HOUR, 1e9])
def test_a_wrong_clock_is_measured_and_not_believed(ahead_s: float) -> None:
    camera = CameraClock(ahead_s=lambda at_s: ahead_s)
    shots = list(camera.shots(12.0))
    reading = camera.times.reading
    assert (reading.clock, reading.is_believed, reading.why) == ("media", False, "skewed")
    assert reading.offset_s == pytest.approx(ahead_s - 0.2, abs=1e-3)
    assert {shot.stamp.clock for shot in shots} == {"media"}


@pytest.mark.parametrize("by_s", [-5 * HOUR, 5 * HOUR])
def test_a_wall_clock_that_jumps_is_left_and_found_again(by_s: float) -> None:
    camera = CameraClock(ahead_s=between(11.0, 41.0, by_s))
    shots, seen = [], []
    for shot in camera.shots(70.0):
        shots.append(shot)
        seen.append(camera.times.reading)
    assert in_order(shots)
    assert max(abs(shot.error_s) for shot in shots[20:]) < 0.21
    codes = [why for why, before in zip(seen, [None, *seen], strict=False) if why is not before]
    told = [a.why for a, b in pairwise([*codes, None]) if b is None or a.why != b.why]
    assert told == ["no_reports", "ok", "jumped", "skewed", "ok"]
    assert (seen[-1].jumps, seen[-1].outliers) == (2, 0)
    # The first report after the jump is doubted, the second one believed.
    assert {s.stamp.clock for s, r in zip(shots, seen, strict=True) if r.why == "jumped"} == {
        "rtcp"
    }
    assert seen[-1].is_believed


@pytest.mark.parametrize("by_s", [-5 * HOUR, -0.5, 0.5, 5 * HOUR])
def test_one_wild_report_moves_nothing(by_s: float) -> None:
    camera = CameraClock(ahead_s=between(14.0, 19.0, by_s))
    shots = list(camera.shots(60.0))
    assert {shot.stamp.clock for shot in shots[3:]} == {"rtcp"}
    assert max(abs(shot.error_s) for shot in shots[20:]) < 1e-4
    assert (camera.times.reading.outliers, camera.times.reading.jumps) == (1, 0)


def test_a_jump_said_over_and_over_in_the_same_words_is_believed_in_the_end() -> None:
    times = CaptureTimes()
    for number in range(600):
        at_ns = number * S // 10
        ahead_ns = S if number >= 100 else 0  # to the nanosecond: reports cannot be told apart
        times.anchor(pts_s=number / 10, wall_ns=START + at_ns + ahead_ns, arrived_ns=at_ns)
        stamp = times.stamp(pts_s=number / 10, arrived_ns=at_ns, arrived_at_ns=START + at_ns)
    assert (times.reading.jumps, times.reading.why) == (1, "ok")
    assert stamp.captured_at_ns == START + at_ns + S


@pytest.mark.parametrize(("ppm", "says"), [(-200.0, True), (200.0, False)])
def test_drift_over_hours_is_measured_and_bounds_hold(ppm: float, says: bool) -> None:
    """With a network that holds back every picture by up to 0.2 s."""
    noise = random.Random(7)
    camera = CameraClock(
        period_s=1.0,
        drift_ppm=ppm,
        latency_s=lambda at_s: 0.05 + noise.random() * 0.2,
        first_report_s=1.0 if says else None,
        report_every_s=30.0,
    )
    worst_s = 0.0
    for shot in camera.shots(1.2 * HOUR):
        if shot.taken_ns - START > 60 * S:
            worst_s = max(worst_s, abs(shot.error_s))
    reading = camera.times.reading
    assert reading.drift_ppm == pytest.approx(ppm, abs=DRIFT_PPM)
    assert worst_s < (0.01 if says else 0.12)
    assert reading.clock == ("rtcp" if says else "media")


def test_drift_is_not_told_before_it_is_known() -> None:
    camera = CameraClock(drift_ppm=100.0)
    for shot in camera.shots(150.0):
        known = camera.times.reading.drift_ppm is not None
        assert known is (shot.taken_ns - START >= 120 * S), shot
    assert camera.times.reading.drift_ppm == pytest.approx(100.0, abs=1.0)


@pytest.mark.parametrize(("ppm", "believed_s"), [(200.0, 500.0), (50.0, 2000.0)])
def test_reports_that_stop_are_believed_until_drift_could_have_made_them_wrong(
    ppm: float, believed_s: float
) -> None:
    camera = CameraClock(period_s=1.0, drift_ppm=ppm, last_report_s=200.0)
    shots = list(camera.shots(200.0 + believed_s * 1.3))
    clocks = [shot.stamp.clock for shot in shots]
    lost = len(clocks) - clocks[::-1].index("rtcp")
    assert shots[lost].taken_ns - START == pytest.approx((200 + believed_s) * S, rel=0.02)
    assert (clocks[-1], camera.times.reading.why) == ("media", "no_reports")
    assert max(abs(shot.error_s) for shot in shots[20:lost]) < 0.105
    assert in_order(shots)


def test_reports_that_come_late_do_not_turn_capture_times_back() -> None:
    camera = CameraClock(latency_s=lambda at_s: 0.9, first_report_s=2.0)
    shots = list(camera.shots(8.0))
    assert in_order(shots)
    assert len({shot.stamp.captured_at_ns for shot in shots}) == len(shots)
    assert [shot.stamp.clock for shot in shots[::60]] == ["media", "rtcp"]
    settled = [shot for shot in shots if shot.taken_ns - START > 4.1 * S]
    assert max(abs(shot.error_s) for shot in settled) < 1e-4


def test_pictures_without_a_time_or_with_that_before() -> None:
    def pts_at(at_s: float, pts_s: float) -> float | None:
        number = round(at_s * 15)
        return {0: None, 50: None, 60: math.nan, 70: pts_s - 1 / 15}.get(number, pts_s)

    camera = CameraClock(pts_at=pts_at)
    shots, whys = [], []
    for shot in camera.shots(6.0):
        shots.append(shot)
        whys.append(camera.times.reading.why)
    assert [whys[n] for n in (0, 50, 60, 70)] == ["no_pts"] * 3 + ["repeated_pts"]
    assert {shots[n].stamp.clock for n in (0, 50, 60, 70)} == {"arrival"}
    assert in_order(shots)
    assert (camera.times.reading.missing_pts, camera.times.reading.repeated_pts) == (3, 1)
    assert whys[-1] == "ok"


WRAP_32, WRAP_33 = 2**32 / 90_000, 2**33 / 90_000


@pytest.mark.parametrize("by_s", [-HOUR, HOUR, -WRAP_32, -WRAP_33, 1e9])
def test_presentation_times_that_jump_are_a_new_line_of_time(by_s: float) -> None:
    jump = from_second(12.0, by_s)
    camera = CameraClock(pts_at=lambda at_s, pts_s: pts_s + jump(at_s))
    shots, seen = [], []
    for shot in camera.shots(40.0):
        shots.append(shot)
        seen.append(camera.times.reading)
    assert in_order(shots)
    assert max(abs(shot.error_s) for shot in shots) < 0.201
    assert [reading.why for reading in seen[180:182]] == ["jumped"] * 2
    assert {shot.stamp.clock for shot in shots[180:182]} == {"arrival"}
    assert (seen[-1].why, seen[-1].clock, seen[-1].outliers) == ("ok", "rtcp", 0)
    assert seen[-1].jumps == 1
    assert max(abs(shot.error_s) for shot in shots[-100:]) < 1e-4


@pytest.mark.parametrize("by_s", [-HOUR, HOUR])
def test_one_wild_presentation_time_is_an_outlier(by_s: float) -> None:
    camera = CameraClock(
        pts_at=lambda at_s, pts_s: pts_s + (by_s if round(at_s * 15) == 100 else 0)
    )
    shots = list(camera.shots(20.0))
    assert shots[100].stamp.clock == "arrival"
    assert {shot.stamp.clock for shot in shots[101:]} == {"rtcp"}
    assert in_order(shots)
    assert max(abs(shot.error_s) for shot in shots[110:]) < 1e-4
    assert (camera.times.reading.outliers, camera.times.reading.jumps) == (1, 0)


@pytest.mark.parametrize("first_s", [-5.0, -1e6, 1e9, 9e9])
def test_the_first_presentation_time_may_be_anything(first_s: float) -> None:
    camera = CameraClock(pts_at=lambda at_s, pts_s: pts_s + first_s)
    shots = list(camera.shots(5.0))
    assert max(abs(shot.error_s) for shot in shots[10:]) < 0.001
    assert camera.times.reading.why == "ok"


@pytest.mark.parametrize("by_s", [-5 * HOUR, 5 * HOUR])
def test_when_our_own_clock_is_set_capture_times_follow_and_the_camera_is_not_believed(
    by_s: float,
) -> None:
    camera = CameraClock(ours_ahead_s=from_second(10.0, by_s))
    shots = list(camera.shots(20.0))
    assert camera.times.reading.why == "skewed"
    assert camera.times.reading.offset_s == pytest.approx(-by_s - 0.2, abs=1e-3)
    for shot in shots[160:]:
        assert shot.stamp.clock == "media"
        assert shot.error_s - by_s == pytest.approx(0.2, abs=0.001)


def test_a_clock_at_the_limit_does_not_flap() -> None:
    limit = CameraClock(ahead_s=lambda at_s: 2.2 + 0.09 * math.sin(at_s))
    seen = []
    for _ in limit.shots(120.0):
        if limit.times.reading.why in ("ok", "skewed"):
            seen.append(limit.times.reading.why)
    assert sum(a != b for a, b in pairwise(seen)) <= 1


@given(st.data())
def test_capture_times_hold_their_bounds_whatever_a_camera_says(data: st.DataObject) -> None:
    seconds = st.one_of(
        st.none(),
        st.floats(allow_nan=True, allow_infinity=True),
        st.floats(-20.0, 20.0),
        st.sampled_from([-HOUR, 0.0, HOUR, 1e9]),
    )
    times, arrived_ns, pts_s, before_ns = CaptureTimes(), 0, 0.0, None
    for _ in range(data.draw(st.integers(1, 25))):
        arrived_ns += data.draw(st.integers(0, 3 * S))
        pts_s += data.draw(st.sampled_from([0.0, 0.04, 0.25, 30.0, -HOUR, HOUR]))
        said = data.draw(st.one_of(st.just(pts_s), seconds))
        if said is not None and math.isfinite(said):
            ahead_ns = data.draw(st.sampled_from([0, S, -S, 3 * S, 3600 * S]))
            for _ in range(3):
                times.anchor(
                    pts_s=said, wall_ns=START + arrived_ns + ahead_ns, arrived_ns=arrived_ns
                )
        stamp = times.stamp(pts_s=said, arrived_ns=arrived_ns, arrived_at_ns=START + arrived_ns)
        late_s = (START + arrived_ns - stamp.captured_at_ns) / S
        assert -2.0 <= late_s <= 10.0
        assert before_ns is None or stamp.captured_at_ns >= before_ns
        before_ns = stamp.captured_at_ns
        reading = times.reading
        assert reading.clock == stamp.clock
        assert reading.is_believed is (stamp.clock == "rtcp")
