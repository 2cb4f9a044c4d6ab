"""Which prediction is judged, by how much it was wrong, and whether that is unusual."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from streamer.futures.config import SurpriseConfig
from streamer.futures.surprise import Match, distance, match_horizon, score

pytestmark = pytest.mark.unit

CONFIG = SurpriseConfig(history=8, min_samples=4)
GRID = {"fps": 4.0, "tubelet": 2, "tubelets": 32}


def test_distance_ignores_scale_and_offset_of_tokens() -> None:
    tokens = torch.randn(5, 64)
    assert distance(tokens, 3 * tokens + 2).item() == pytest.approx(0, abs=1e-4)
    assert distance(tokens, torch.randn(5, 64)).item() > 0.5
    assert distance(tokens.bfloat16(), tokens).dtype is torch.float32


@pytest.mark.parametrize(
    ("shift", "expected"),
    [
        (2, Match(row=0, tubelets_ago=0)),
        (4, Match(row=1, tubelets_ago=0)),
        (6, Match(row=1, tubelets_ago=1)),
        (8, Match(row=2, tubelets_ago=0)),
        (60, Match(row=2, tubelets_ago=26)),
        (0, None),
        (-4, None),
        (3, None),
        (64, Match(row=2, tubelets_ago=28)),
        (400, None),
    ],
)
def test_the_furthest_horizon_that_came_true(shift: int, expected: Match | None) -> None:
    assert match_horizon((0.5, 1.0, 2.0), shift_ticks=shift, **GRID) == expected


def test_nothing_came_true_yet() -> None:
    assert match_horizon((2.0,), shift_ticks=4, **GRID) is None


def test_the_baseline_fills_before_z() -> None:
    values = (1.0, 1.1, 0.9, 1.0, 2.0)
    seen = [score(values[:n], value=value, config=CONFIG) for n, value in enumerate(values)]
    assert seen[0].baseline is None
    assert [each.z for each in seen[:4]] == [None] * 4
    assert seen[4].baseline == 1.0
    assert seen[4].z is not None and seen[4].z > 5


def test_a_scene_that_repeats_itself_has_no_infinite_z() -> None:
    assert score((0.5,) * 8, value=0.5, config=CONFIG).z == 0
    assert score((0.5,) * 8, value=0.6, config=CONFIG).z == pytest.approx(20)
    assert score((0.0,) * 8, value=0.0, config=CONFIG).z == 0


@given(st.lists(st.floats(0, 2), max_size=40), st.floats(0, 2))
def test_the_numbers_are_finite(history: list[float], value: float) -> None:
    judged = score(history, value=value, config=CONFIG)
    assert judged.z is None or abs(judged.z) < float("inf")
    assert score(history[-8:], value=value, config=CONFIG) == judged
