"""Time: the only module that calls `time`.

Durations and ages come from `monotonic_ns`; wall time only labels. `format_utc` is the one way a
time becomes text (RFC 3339, UTC, microseconds).
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

__all__ = ["both_ns", "format_utc", "monotonic_ns", "parse_utc", "wall_ns"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOOKS = 5
_AT_ONCE_NS = 100_000


def monotonic_ns() -> int:
    """Nanoseconds on this process's monotonic clock; comparable only within one machine."""
    return time.monotonic_ns()


def wall_ns() -> int:
    """UTC now, nanoseconds since 1970."""
    return time.time_ns()


def both_ns() -> tuple[int, int]:
    """`monotonic_ns` and `wall_ns` of one moment: looked at again when this thread had to wait
    between the two, so that their difference tells nothing but where the wall clock stands."""
    looks = []
    for _ in range(_LOOKS):
        before_ns, now_ns, after_ns = monotonic_ns(), wall_ns(), monotonic_ns()
        if after_ns - before_ns <= _AT_ONCE_NS:
            return before_ns, now_ns
        looks.append((after_ns - before_ns, before_ns, now_ns))
    _, best_ns, best_wall_ns = min(looks)
    return best_ns, best_wall_ns


def format_utc(ns: int) -> str:
    """UTC nanoseconds since 1970 -> ``2026-12-01T09:00:03.412345Z`` (microseconds, truncated)."""
    moment = _EPOCH + timedelta(microseconds=ns // 1000)
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_utc(text: str) -> int:
    """RFC 3339 text -> UTC nanoseconds since 1970 (exact to the microsecond).

    Raises:
        ValueError: not RFC 3339, without a zone, or in UTC before year 1 or after 9999.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write it with Z or an offset")
    try:
        delta = moment.astimezone(UTC) - _EPOCH
    except OverflowError as error:
        raise ValueError(f"{text!r} is no year of UTC that can be written") from error
    return ((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds) * 1000
