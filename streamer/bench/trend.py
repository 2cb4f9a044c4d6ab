"""Robust numbers of noisy series: a slope that outliers do not move, quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import TypeVar

__all__ = ["quantile", "slope", "thirds"]

_MOST = 240
_T = TypeVar("_T")


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """Theil-Sen: the median of the slopes of all pairs; 0 for fewer than two points.

    A third of the points may lie anywhere. Of long series every n-th point is taken.
    """
    step = -(-len(times) // _MOST) or 1
    points = list(zip(times, values, strict=True))[::step]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if b[0] > a[0]]
    return median(slopes) if slopes else 0.0


def quantile(values: Sequence[float], part: float) -> float:
    """Nearest rank; 0 of nothing."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, max(0, -(-round(part * 1000) * len(ordered) // 1000) - 1))]


def thirds(items: Sequence[_T]) -> tuple[Sequence[_T], Sequence[_T]]:
    """The first and the last third; at least one item each where there is any."""
    size = max(1, len(items) // 3)
    return items[:size], items[-size:]
