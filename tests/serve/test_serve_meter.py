"""Our numbers come out where Prometheus looks for Ray's."""

from __future__ import annotations

import re
import time
import urllib.request
from typing import Any

import pytest
import ray
from ray import serve

from deployments import meter as meter_module
from deployments.meter import OTHER_STREAMS, RayMeter

pytestmark = pytest.mark.serve

WAIT_S = 30.0


class Counting:
    def __init__(self) -> None:
        self._meter = RayMeter()

    async def count(self) -> None:
        self._meter.add("streamer_clips_total", 2, stream="kitchen", fate="published")
        self._meter.add("streamer_clips_total", 0, stream="kitchen", fate="published")
        self._meter.add("streamer_clips_total", stream="kitchen", fate="published")
        self._meter.observe("streamer_stage_seconds", 0.2, stage="encode")
        self._meter.observe("streamer_batch_size", 4, stage="encode")
        self._meter.observe("streamer_surprise", 0.5, stream="kitchen")


def exported() -> str:
    (node,) = [node for node in ray.nodes() if node["Alive"]]
    address = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    with urllib.request.urlopen(address, timeout=5) as answer:
        text: str = answer.read().decode()
    return text


def test_counters_histograms_and_gauges_are_exported(run_app: Any) -> None:
    options = {"ray_actor_options": {"num_cpus": 0.1}, "graceful_shutdown_timeout_s": 1}
    handle = run_app(serve.deployment(Counting, **options).bind(), name="counting")
    handle.count.remote().result(timeout_s=WAIT_S)
    wanted = {
        r"^ray_streamer_clips_total\{.*fate=\"published\".*\} 3\.0$",
        r"^ray_streamer_stage_seconds_bucket\{.*le=\"0\.25\".*\} 1\.0$",
        r"^ray_streamer_batch_size_bucket\{.*le=\"4\.0\".*\} 1\.0$",
        r"^ray_streamer_surprise\{.*stream=\"kitchen\".*\} 0\.5$",
    }
    end = time.monotonic() + WAIT_S
    missing = wanted
    while missing and time.monotonic() < end:
        text = exported()
        missing = {pattern for pattern in wanted if not re.search(pattern, text, re.MULTILINE)}
        time.sleep(0.5)
    assert missing == set(), [line for line in text.splitlines() if "streamer" in line]


class FakeMetric:
    def __init__(self) -> None:
        self.tags: list[dict[str, str]] = []

    def inc(self, value: float, *, tags: dict[str, str]) -> None:
        self.tags.append(tags)


def test_streams_beyond_the_bound_share_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray never forgets a series."""
    made = FakeMetric()
    monkeypatch.setattr(meter_module, "_make", lambda metric: made)
    meter = RayMeter(max_streams=2)
    for stream in ("a", "b", "a", "c", "b", "d"):
        meter.add("streamer_frames_total", stream=stream, fate="used")
    streams = [tags["stream"] for tags in made.tags]
    assert streams == ["a", "b", "a", OTHER_STREAMS, "b", OTHER_STREAMS]
