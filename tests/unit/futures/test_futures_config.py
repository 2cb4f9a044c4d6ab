"""Which horizons can be had."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import ConfigError, HorizonUnreachable
from streamer.futures.config import (
    AnticipativeConfig,
    RolloutConfig,
    SurpriseConfig,
    context_tubelets,
    future_offsets_s,
    gap_steps,
    horizon_step,
    plan_horizons,
)

pytestmark = pytest.mark.unit

USUAL = {"mode": "contiguous", "frames": 64, "fps": 4.0, "tubelet": 2, "trained_frames": 64}


def _plan(*horizons_s: float, **changes):
    return plan_horizons(horizons_s, **(USUAL | changes))


def test_rounds_up_sorts_and_keeps_each_once() -> None:
    assert _plan(2, 0.3, 0.5, 0.1, 1.01) == (0.5, 1.5, 2.0)


def test_the_largest_is_the_context() -> None:
    assert _plan(15.5) == (15.5,)
    with pytest.raises(HorizonUnreachable, match=r"15\.5 s") as caught:
        _plan(0.5, 15.6)
    assert caught.value.largest_s == 15.5


def test_a_short_clip_is_all_context() -> None:
    assert _plan(4, frames=16) == (4.0,)
    with pytest.raises(HorizonUnreachable):
        _plan(4.5, frames=16)


def test_gap_mode_reaches_as_far_as_the_clip() -> None:
    assert _plan(16, mode="gap") == (16.0,)
    with pytest.raises(HorizonUnreachable):
        _plan(16.5, mode="gap")


@pytest.mark.parametrize("bad", [(), (0,), (-1,), (float("nan"),), (float("inf"),), (1,) * 65])
def test_what_is_no_horizon_is_refused(bad: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError):
        _plan(*bad)


@given(
    horizons_s=st.lists(st.floats(0.01, 15), min_size=1, max_size=5),
    fps=st.sampled_from([1, 2.5, 3, 4, 7.3, 8, 29.97, 30]),
    tubelet=st.sampled_from([1, 2, 4]),
    mode=st.sampled_from(["contiguous", "gap"]),
)
def test_planning_twice_changes_nothing(horizons_s, fps, tubelet, mode) -> None:
    plan = {"mode": mode, "frames": 1024, "fps": fps, "tubelet": tubelet, "trained_frames": 1024}
    once = plan_horizons(horizons_s, **plan)
    assert plan_horizons(once, **plan) == once
    assert all(any(got > want - 1e-3 for got in once) for want in horizons_s)
    assert list(once) == sorted(set(once))


def test_offsets_are_those_of_the_two_predicted_frames() -> None:
    assert future_offsets_s(1, fps=4, tubelet=2) == (0.25, 0.5)
    assert future_offsets_s(3, fps=4, tubelet=2) == (1.25, 1.5)
    gap = gap_steps(1.0, fps=8, tubelet=2)
    assert gap == 4
    assert future_offsets_s(gap + 1, fps=8, tubelet=2) == (9 / 8, 10 / 8)


def test_steps() -> None:
    assert horizon_step(1e-9, fps=4, tubelet=2) == 1
    assert horizon_step(0.666667, fps=3, tubelet=2) == 1
    assert context_tubelets(32, trained=32) == 31
    assert context_tubelets(16, trained=32) == 16
    assert context_tubelets(1, trained=1) == 1
    assert context_tubelets(32, trained=32, wanted=8) == 8
    assert context_tubelets(32, trained=32, wanted=40) == 32


@pytest.mark.parametrize(
    "build",
    [
        lambda: RolloutConfig(context_tubelets=0),
        lambda: RolloutConfig(mask_index=-1),
        lambda: RolloutConfig(dtype="float64"),
        lambda: SurpriseConfig(history=65),
        lambda: SurpriseConfig(min_samples=1),
        lambda: SurpriseConfig(history=4, min_samples=5),
        lambda: SurpriseConfig(min_spread=0),
        lambda: AnticipativeConfig(fps=0),
        lambda: AnticipativeConfig(num_steps=0),
        lambda: AnticipativeConfig(no_encoder=True, no_predictor=True),
    ],
)
def test_configs_that_cannot_work(build) -> None:
    with pytest.raises(ConfigError):
        build()


def test_gateways_can_plan_without_torch() -> None:
    code = "import sys, streamer.futures.config; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
