"""Whether two runs over one file said the same, number by number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

__all__ = ["assert_same_events"]

_OWN = ("id", "time", "latency_ms")
"""What each run has of its own."""
_CLOSE = 1e-4


def assert_same_events(found: Sequence[str | bytes], expected: Sequence[str | bytes]) -> None:
    """Field by field; numbers with a fraction within 1e-4, episodes by the order they come in."""
    assert len(found) == len(expected)
    names: tuple[dict[str, int], dict[str, int]] = {}, {}
    for one, other in zip(found, expected, strict=True):
        _assert_same(_common(one, names[0]), _common(other, names[1]))


def _common(line: str | bytes, episodes: dict[str, int]) -> Any:
    event = json.loads(line)
    assert {"id", "time"} <= event.keys()
    for place in (event, event.get("surprise")):
        if isinstance(place, dict) and place.get("episode"):
            place["episode"] = episodes.setdefault(place["episode"], len(episodes))
    return {name: value for name, value in event.items() if name not in _OWN}


def _assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            _assert_same(found[name], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _assert_same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=_CLOSE)
    else:
        assert found == expected
