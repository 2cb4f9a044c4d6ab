"""Schedules, value for value."""

from __future__ import annotations

import pytest

from streamer.training.schedule import (
    ConstantThenLinear,
    EmaMomentum,
    HalfCosine,
    LinearCooldown,
    Schedule,
    WarmupCosine,
)

pytestmark = pytest.mark.parity


def _ours(given: dict) -> Schedule:
    match given.get("cls"):
        case "WarmupCosineSchedule":
            return WarmupCosine(
                start=given["start_lr"],
                peak=given["ref_lr"],
                final=given["final_lr"],
                warmup=given["warmup_steps"],
                total=given["T_max"],
            )
        case "LinearDecaySchedule":
            return LinearCooldown(
                start=given["ref_lr"], final=given["final_lr"], total=given["T_max"]
            )
        case "WSDSchedule":
            return ConstantThenLinear(
                start=given["start_lr"],
                peak=given["ref_lr"],
                final=given["final_lr"],
                warmup=given["warmup_steps"],
                decay=given["anneal_steps"],
                total=given["T_max"],
            )
        case "CosineWDSchedule":
            return HalfCosine(start=given["ref_wd"], final=given["final_wd"], total=given["T_max"])
        case _:
            start, final = given["ema"]
            total = given["ipe"] * given["epochs"] * given["ipe_scale"]
            return EmaMomentum(start=start, final=final, total=total)


def test_every_value_is_upstreams(published) -> None:
    file = published("schedules")
    assert set(file.config) == {"cosine", "linear", "wsd", "wd", "wd_down", "ema"}
    for name, given in file.config.items():
        ours = _ours(given)
        expected = file.expected[name].tolist()
        found = [ours(i) for i in range(1, len(expected) + 1)]
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-12), name
