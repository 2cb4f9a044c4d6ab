"""Events as lines for people."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.cli.lines import event_line
from streamer.cli.seconds import parse_seconds
from streamer.errors import ConfigError

pytestmark = pytest.mark.unit

ANTICIPATION: dict[str, Any] = {
    "type": "anticipation",
    "stream": "demo",
    "seq": 7,
    "window": {"end": "2026-12-01T09:00:03.300000Z", "dropped": 0},
    "futures": [{"horizon_s": 0.5, "drift": 0.08}, {"horizon_s": 1.0, "drift": 0.125}],
    "surprise": {"value": 0.113, "z": 0.42},
    "latency_ms": {"total": 112.4},
    "notes": [],
}
STATE: dict[str, Any] = {
    "type": "stream.state",
    "stream": "demo",
    "seq": 2,
    "state": "live",
    "reason": "",
    "detail": "",
    "retry_in_s": None,
    "have": None,
    "need": None,
}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {},
            "demo #7  09:00:03.3  surprise 0.113 (z +0.4)  drift +0.5s 0.080  +1s 0.125  112 ms",
        ),
        (
            {"surprise": None, "notes": ["untrained"]},
            "demo #7  09:00:03.3  surprise -  drift +0.5s 0.080  +1s 0.125  112 ms  [untrained]",
        ),
        (
            {
                "surprise": {"value": 0.1, "z": None},
                "window": {"end": "2026-12-01T09:00:03.300000Z", "dropped": 4},
            },
            "demo #7  09:00:03.3  surprise 0.100  drift +0.5s 0.080  +1s 0.125  112 ms  4 dropped",
        ),
    ],
)
def test_anticipations(changes: dict[str, Any], line: str) -> None:
    assert event_line(ANTICIPATION | changes) == line


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "demo #2  live"),
        (
            {"reason": "filling", "have": 16, "need": 64},
            "demo #2  live: filling (16 of 64 frames)",
        ),
        (
            {"state": "reconnecting", "reason": "refused", "retry_in_s": 1.5, "detail": "Nobody."},
            "demo #2  reconnecting: refused (next try in 1.5 s)  Nobody.",
        ),
    ],
)
def test_states(changes: dict[str, Any], line: str) -> None:
    assert event_line(STATE | changes) == line


def test_types_of_tomorrow_are_shown_by_name() -> None:
    assert event_line({"type": "plan", "stream": "demo"}) == "demo  plan"


def test_horizons_are_seconds_with_commas() -> None:
    assert parse_seconds(None) is None
    assert parse_seconds("0.5, 1,2") == [0.5, 1.0, 2.0]
    with pytest.raises(ConfigError, match="'1,soon'"):
        parse_seconds("1,soon")
