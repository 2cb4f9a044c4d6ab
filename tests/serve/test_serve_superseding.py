"""A live stream whose rollouts take longer than its stride, on a real graph of several replicas."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from feed_follower import Follower, following
from media_files import corner, write_video
from ray import cloudpickle, serve
from ray.serve import Application

from deployments import app as graph
from deployments.config import EDGE_APP, PIPELINE_APP, encoder_options, rollout_options
from deployments.deploy import deploy
from deployments.encoder import EncoderReplica
from deployments.pipeline import RayPipeline
from deployments.rollout import RolloutReplica
from deployments.store import stop_store
from streamer.clock import parse_utc
from streamer.errors import CapacityError
from streamer.settings import Settings, load_settings
from streamer.sources.open import file_url

pytestmark = pytest.mark.serve

STEP_S = 0.3
STRIDE_S = 0.5
HORIZONS_S = [0.5, 1.0, 1.5, 2.0]
START_S = 60.0


class SlowRollout(RolloutReplica):
    """Each step of it takes `STEP_S` on the device."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        await super().__init__(settings)  # type: ignore[misc]
        predictor = self._service._engine._rollout._predictor
        predictor.register_forward_pre_hook(lambda *_: time.sleep(STEP_S))


def slow_models(settings: Settings) -> tuple[Application, Application]:
    layout = settings.ray
    encoder = serve.deployment(name="Encoder", **encoder_options(layout))(EncoderReplica)
    rollout = serve.deployment(name="Rollout", **rollout_options(layout))(SlowRollout)
    return encoder.bind(settings), rollout.bind(settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("videos")


@pytest.fixture(scope="module")
def url(cluster: str, folder: Path) -> Iterator[str]:
    settings = load_settings(
        options={
            "model": {"threads": 1},
            "ray": {"placement": "split", "rollout_replicas": 2},
            "sources": {"allow_files": [str(folder)]},
        },
        environ={},
    )
    stop_store()
    # Replicas do not find what this module imports from `tests`.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "_models", slow_models)
        deploy(settings)
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    yield cluster
    serve.delete(EDGE_APP)
    serve.delete(PIPELINE_APP)
    stop_store()


@pytest.fixture
async def client(url: str) -> Any:
    async with httpx2.AsyncClient(base_url=url, timeout=20) as client:
        async with asyncio.timeout(START_S):
            while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        yield client


async def add(client: Any, stream: str, source: str) -> None:
    body = {
        "id": stream,
        "source": source,
        "sampling": {"stride_s": STRIDE_S},
        "horizons_s": HORIZONS_S,
    }
    answer = await client.post("/v1/streams", json=body)
    assert answer.status_code == 201, answer.text


def horizons(event: dict[str, Any]) -> list[float]:
    return [future["horizon_s"] for future in event["futures"]]


def ages_s(follower: Follower) -> list[float]:
    return [
        (parse_utc(event["time"]) - parse_utc(event["capture_time"])) / 1e9
        for event in follower.anticipations
    ]


async def test_a_newer_clip_cuts_the_rollout_short_wherever_it_runs(client: Any, url: str) -> None:
    """Two streams over two replicas: with one of each, any word would reach the right one."""
    await add(client, "left", "synthetic:bounce?seed=1")
    await add(client, "right", "synthetic:bounce?seed=2")
    async with following(url, "left") as left, following(url, "right") as right:
        for follower in (left, right):
            await follower.wait_more(16, timeout_s=START_S)
        views = [(await client.get(f"/v1/streams/{s}")).json() for s in ("left", "right")]
    for stream in ("left", "right"):
        await client.delete(f"/v1/streams/{stream}")
    for follower, view in zip((left, right), views, strict=True):
        events = follower.anticipations
        cut = [event for event in events if "superseded" in event["notes"]]
        assert len(cut) >= len(events) / 2
        # Told at once, a step after the next clip; not when somebody happens to hear of it.
        assert sum(len(horizons(event)) <= 2 for event in events) >= len(events) * 3 / 4
        for event in events:
            made = horizons(event)
            assert made == HORIZONS_S[: len(made)] and made
            assert ("superseded" in event["notes"]) == (made != HORIZONS_S)
        assert view["drops"]["rollouts_superseded"] >= len(cut) - 2  # told once a second
        ages = ages_s(follower)
        early, late = statistics.median(ages[4:10]), statistics.median(ages[10:16])
        print(f"horizons {[len(horizons(event)) for event in events]}, ages {ages}")
        assert late < early + STRIDE_S
        # Each event's surprise is about a future that was made, not about one that was asked for.
        by_seq = {event["seq"]: event for event in events}
        judged = [event for event in events[1:] if event["surprise"]]
        assert judged
        for event in judged:
            surprise = event["surprise"]
            assert surprise["horizon_s"] in horizons(by_seq[surprise["predicted_by"]])


async def test_a_file_keeps_all_its_horizons(client: Any, url: str, folder: Path) -> None:
    video = write_video(folder / "red.mp4", (corner() for _ in range(175)), fps=10)
    await add(client, "file", file_url(video))
    async with following(url, "file") as follower:
        await follower.wait_for(
            lambda: follower.events and follower.events[-1].get("state") == "ended",
            timeout_s=START_S,
        )
    assert len(follower.anticipations) >= 3
    for event in follower.anticipations:
        assert horizons(event) == HORIZONS_S
        assert "superseded" not in event["notes"]


async def test_nobody_to_tell_is_told_as_such(url: str) -> None:
    """As while a deployment is exchanged: a refusal like any other, which a carrier outlives."""
    pipeline = serve.get_app_handle(PIPELINE_APP)
    with pytest.raises(CapacityError, match="1 of 1 replicas"):
        # There is one supervisor, which knows no such method; a rollout would.
        await RayPipeline(pipeline, pipeline).supersede("left", 0)
