"""Closed forms of motion in the unit square: where something is after any time, without history."""

from __future__ import annotations

__all__ = ["bounce", "wrap"]


def bounce(
    start: float, *, speed: float, time_s: float, low: float, high: float
) -> tuple[float, float]:
    """Elastic motion between two walls.

    Args:
        start: place at time 0, between `low` and `high`.
        speed: signed, per second.

    Returns:
        Place and signed speed at `time_s`.
    """
    span = high - low
    travelled = (start - low + speed * time_s) % (2 * span)
    if travelled < span:
        return low + travelled, speed
    return high - (travelled - span), -speed


def wrap(start: float, *, speed: float, time_s: float) -> float:
    """Uniform motion on a circle of circumference 1: leaving at one side, back at the other."""
    return (start + speed * time_s) % 1.0
