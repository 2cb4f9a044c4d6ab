"""Robust numbers of noisy series."""

from __future__ import annotations

import random

import pytest

from streamer.bench.trend import quantile, slope, thirds

pytestmark = pytest.mark.unit


def test_a_quarter_of_outliers_does_not_move_the_slope() -> None:
    noise = random.Random(1)
    times = [float(n) for n in range(100)]
    values = [3.0 * t + noise.gauss(0, 1) + (500 if n % 4 == 0 else 0) for n, t in enumerate(times)]
    assert slope(times, values) == pytest.approx(3.0, abs=0.3)


def test_a_flat_series_and_no_series_have_no_slope() -> None:
    assert slope([0.0, 1.0, 2.0], [5.0, 5.0, 5.0]) == 0.0
    assert slope([1.0], [5.0]) == slope([], []) == 0.0


def test_a_long_series_keeps_its_slope() -> None:
    times = [float(n) for n in range(5000)]
    assert slope(times, [2 * t for t in times]) == pytest.approx(2.0)


@pytest.mark.parametrize(("part", "value"), [(0.0, 1), (0.5, 2), (0.75, 3), (0.95, 4), (1.0, 4)])
def test_quantiles_are_values_that_were_there(part: float, value: float) -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], part) == value
    assert quantile([], part) == 0.0


def test_thirds_hold_something_where_there_is_something() -> None:
    assert thirds([1, 2, 3, 4, 5, 6, 7]) == ([1, 2], [6, 7])
    assert thirds([1]) == ([1], [1])
