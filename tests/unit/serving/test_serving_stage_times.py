"""The newest times of a replica, and what its model says of itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamer.models.config import VJepa2Config
from streamer.models.vjepa2 import VJepa2
from streamer.serving.model_info import model_info
from streamer.serving.stage_times import StageTimes
from streamer.store.protocol import StageTime

pytestmark = pytest.mark.unit


def _observe(times: StageTimes, *seconds: float, stage: str = "encode") -> None:
    for each in seconds:
        times.observe("streamer_stage_seconds", each, stage=stage)


def test_nothing_before_the_first_batch() -> None:
    assert StageTimes().now() == {}


@pytest.mark.parametrize(
    ("count", "p50", "p95"), [(1, 1, 1), (2, 1, 2), (3, 2, 3), (20, 10, 19), (100, 50, 95)]
)
def test_nearest_rank(count: int, p50: int, p95: int) -> None:
    times = StageTimes()
    _observe(times, *reversed([n / 1e3 for n in range(1, count + 1)]))
    found = times.now()["encode"]
    assert found.batches == count
    assert (found.p50_ms, found.p95_ms) == (pytest.approx(p50), pytest.approx(p95))


def test_only_the_newest_of_the_stages_that_models_have() -> None:
    times = StageTimes(newest=2)
    _observe(times, 9.0, 0.001, 0.001)
    _observe(times, 0.5, stage="rollout")
    _observe(times, 0.5, stage="queue")
    times.observe("streamer_batch_size", 3.0, stage="encode")
    times.add("streamer_refused_total", stage="encode", reason="queue_full")
    assert times.now() == {
        "encode": StageTime(batches=2, p50_ms=1.0, p95_ms=1.0),
        "rollout": StageTime(batches=1, p50_ms=500.0, p95_ms=500.0),
    }


def test_heads_are_what_the_checkpoint_has(small_config: VJepa2Config) -> None:
    assert model_info(VJepa2(small_config), dtype="float32").heads == {}
    labels = {0: "open", 1: "close", 2: "wait"}
    named = replace(small_config, architectures=("VJEPA2ForVideoClassification",), id2label=labels)
    assert model_info(VJepa2(named), dtype="float32").heads == {"classifier": labels}
    unnamed = model_info(VJepa2(replace(named, id2label={})), dtype="float32").heads
    assert unnamed == {"classifier": {0: "LABEL_0", 1: "LABEL_1"}}
