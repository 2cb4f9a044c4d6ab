"""Events per second, by what came and not by what was promised."""

from __future__ import annotations

import pytest

from streamer.frames.rate import RateMeter

pytestmark = pytest.mark.unit


def test_one_by_one_over_the_newest_span() -> None:
    meter = RateMeter(span_s=2.0)
    for n in range(100):
        meter.add(n / 25)
    for n in range(20):
        meter.add(4 + n / 4)
    assert meter.fps == pytest.approx(4.0)
    assert meter.span_s == pytest.approx(2.0)


def test_nothing_is_known_before_two_times() -> None:
    meter = RateMeter(span_s=2.0)
    assert (meter.fps, meter.span_s) == (None, 0.0)
    meter.add(1.0)
    meter.add(1.0)
    assert meter.fps is None


def test_totals_after_the_burst_at_the_start() -> None:
    meter = RateMeter(span_s=2.0, settle_s=2.0)
    seen = []
    for at_s, total in [(0, 0), (10, 100), (11, 390), (12, 400), (13, 415), (14, 430), (18, 430)]:
        meter.add(at_s, total=total)
        seen.append(meter.fps)
    assert seen == [None] * 4 + [15.0, 15.0, 0.0]  # the last: a silent camera


def test_a_restart_forgets() -> None:
    meter = RateMeter(span_s=2.0)
    meter.add(0.0)
    meter.add(1.0)
    meter.restart()
    assert meter.fps is None


def test_memory_is_bounded() -> None:
    meter = RateMeter(span_s=1e9)
    for n in range(3000):
        meter.add(n / 100)
    assert meter.fps == pytest.approx(100.0)
    assert meter.span_s == pytest.approx(1023 / 100)
