"""The whole graph with separate pools and a real Redis, and what happens when parts of it die.

The fused graph with the embedded store is what `tests/e2e/ray` starts.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
import ray
from feed_follower import following
from local_service import run_streamer
from media_files import RED, write_video
from ray import serve
from redis_server import running_redis
from safetensors.numpy import load, load_file
from same_events import assert_same_events

from deployments.app import edge
from deployments.config import EDGE_APP, PIPELINE_APP
from deployments.deploy import deploy, drain
from deployments.store import stop_store
from streamer.errors import ConfigError
from streamer.playback import opened_playback
from streamer.settings import Settings, load_settings
from streamer.sources.open import file_url
from streamer.store.open import opened_store

pytestmark = pytest.mark.serve

START_S = 60.0
MODEL_BACK_S = 20.0
"""An encoder or rollout replica may be missed for so long."""
EDGE_BACK_S = 10.0
_LEASES_BACK_S = 3.0
"""Less than a lease lives."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("videos")


@pytest.fixture(scope="module")
def settings(folder: Path) -> Iterator[Settings]:
    with running_redis() as redis:
        yield load_settings(
            options={
                "model": {"threads": 1},
                "ray": {"placement": "split"},
                "sampling": {"stride_s": 0.5},
                "sources": {"allow_files": [str(folder)]},
                "store": {"url": redis.url},
            },
            environ={},
        )


def test_a_model_that_does_not_load_is_told(cluster: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    broken = load_settings(options={"model": {"name": str(tmp_path)}}, environ={})
    stop_store()
    try:
        with pytest.raises(ConfigError, match=r"cannot start.*Fused") as caught:
            deploy(broken)
        assert "Traceback" not in str(caught.value)
    finally:
        serve.delete(EDGE_APP)
        serve.delete(PIPELINE_APP)
        stop_store()


@pytest.fixture(scope="module")
def url(cluster: str, settings: Settings) -> Iterator[str]:
    deploy(settings)
    yield cluster
    serve.delete(EDGE_APP)
    serve.delete(PIPELINE_APP)


@pytest.fixture
async def client(url: str) -> Any:
    async with httpx2.AsyncClient(base_url=url, timeout=20) as client:
        await eventually_ready(client)
        yield client


async def eventually_ready(client: Any) -> None:
    async with asyncio.timeout(START_S):
        while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110  # no event for it
            await asyncio.sleep(0.2)


async def add(client: Any, stream: str, source: str) -> None:
    body = {"id": stream, "source": source, "sampling": {"stride_s": 0.5}}
    answer = await client.post("/v1/streams", json=body)
    assert answer.status_code == 201, answer.text


def replica_pids(deployment: str) -> list[int]:
    """Processes of a deployment's replicas."""
    found = []
    for actor in ray.util.list_named_actors(all_namespaces=True):
        if f"#{deployment}#" in actor["name"]:
            handle = ray.get_actor(actor["name"], namespace=actor["namespace"])
            found.append(ray.get(handle.__ray_call__.remote(lambda _: os.getpid()), timeout=10))
    return found


def kill_replica(deployment: str) -> None:
    (pid,) = replica_pids(deployment)
    os.kill(pid, signal.SIGKILL)


async def test_the_graph_is_ready_and_says_what_it_is(client: Any) -> None:
    ready = (await client.get("/readyz")).json()
    assert {c["name"] for c in ready["checks"]} >= {"ingest", "encoder", "rollout", "supervisor"}
    assert (await client.get("/version")).json()["runtime"] == "ray"
    (model,) = (await client.get("/v1/models")).json()["models"]
    assert (model["name"], model["trained"]) == ("tiny", False)


async def test_a_file_gives_what_one_process_gives(
    client: Any, url: str, folder: Path, settings: Settings
) -> None:
    video = write_video(folder / "ball.mp4", (moving_square(n) for n in range(200)), fps=10)
    async with opened_playback(video, settings=settings) as playback:
        alone = [json.loads(event) async for event in playback.events]
    await add(client, "ball", file_url(video))
    async with following(url, "ball") as follower:
        await follower.wait_for(
            lambda: follower.events and follower.events[-1].get("state") == "ended",
            timeout_s=START_S,
        )
    expected = [event for event in alone if event["type"] == "anticipation"]
    assert len(expected) >= 5
    assert len(follower.anticipations) == len(expected)
    for mine, theirs in zip(follower.anticipations, expected, strict=True):
        assert comparable(mine) == pytest.approx(comparable(theirs), abs=1e-4)
        assert mine["window"] == theirs["window"]
        assert mine["notes"] == theirs["notes"]
        assert mine["model"] == theirs["model"]


async def test_an_upload_gives_what_one_process_gives(
    client: Any, folder: Path, settings: Settings
) -> None:
    video = write_video(folder / "sent.mp4", (moving_square(n) for n in range(200)), fps=10)
    async with opened_playback(video, settings=settings) as playback:
        alone = [event async for event in playback.events]
    form = {"file": ("sent.mp4", video.read_bytes())}
    answer = await client.post("/v1/anticipations", files=form)
    assert answer.status_code == 200, answer.text
    assert_same_events(answer.text.splitlines(), alone)
    streams = (await client.get("/v1/streams")).json()["streams"]
    assert "sent" not in [stream["id"] for stream in streams]


async def test_latents_of_an_upload(client: Any, folder: Path, tmp_path: Path) -> None:
    video = write_video(folder / "short.mp4", (moving_square(n) for n in range(30)), fps=10)
    out = tmp_path / "alone.safetensors"
    options = ["--frames", "8", "--context-ids", "0-31", "--target-ids", "40-50"]
    assert run_streamer("encode", str(video), "--out", str(out), *options).returncode == 0
    query = {"frames": "8", "context_ids": "0-31", "target_ids": "40-50"}
    answer = await client.post(
        "/v1/latents", params=query, files={"file": ("x", video.read_bytes())}
    )
    assert answer.status_code == 200, answer.text
    found, expected = load(answer.content), load_file(out)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, abs=1e-5)


def moving_square(number: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    image = np.full((64, 64, 3), 90, np.uint8)
    left = number * 3 % 48
    image[24:40, left : left + 16] = RED
    return image


def comparable(event: dict[str, Any]) -> list[float]:
    surprise = event["surprise"] or {"value": -1.0, "horizon_s": -1.0}
    futures = [(future["horizon_s"], future["drift"]) for future in event["futures"]]
    return [surprise["value"], surprise["horizon_s"], *(n for pair in futures for n in pair)]


@pytest.mark.parametrize("deployment", ["Encoder", "Rollout"])
async def test_a_model_replica_may_die(client: Any, url: str, deployment: str) -> None:
    stream = deployment.lower()
    await add(client, stream, "synthetic:bounce?seed=1")
    async with following(url, stream) as follower:
        await follower.wait_more(2, timeout_s=START_S)
        kill_replica(deployment)
        back_s = await follower.wait_more(3, timeout_s=MODEL_BACK_S)
        print(f"{deployment} killed: next anticipation after {back_s:.1f} s")
    # The session went on: it dropped clips, and opened the stream only once.
    states = [event["reason"] for event in follower.events if event["type"] == "stream.state"]
    assert states.count("opening") == 1
    await client.delete(f"/v1/streams/{stream}")
    await eventually_ready(client)


async def test_a_client_resumes_through_an_update_of_the_edge(
    client: Any, url: str, settings: Settings
) -> None:
    await add(client, "hall", "synthetic:bounce?seed=2")
    before = replica_pids("Gateway")
    async with following(url, "hall") as follower:
        await follower.wait_more(2, timeout_s=START_S)
        changed = settings.model_copy(update={"retain_s": 1800.0})
        await asyncio.to_thread(serve.run, edge(changed), name=EDGE_APP, route_prefix="/")
        back_s = await follower.wait_more(3, timeout_s=EDGE_BACK_S)
        print(f"edge updated: next anticipation after {back_s:.1f} s, sockets {follower.ends}")
        assert follower.ends, "the old gateway is gone"
    assert not set(before) & set(replica_pids("Gateway"))
    states = [event["reason"] for event in follower.events if event["type"] == "stream.state"]
    assert states.count("opening") == 1, "models and sessions do not notice"
    await client.delete("/v1/streams/hall")


async def test_arrays_leave_the_object_store(client: Any, url: str) -> None:
    before = object_store_bytes()  # a proxy may still hold what a client left unread
    await add(client, "shelf", "synthetic:bounce?seed=3")
    async with following(url, "shelf") as follower:
        await follower.wait_more(10, timeout_s=START_S)
    await client.delete("/v1/streams/shelf")
    async with asyncio.timeout(START_S):
        while object_store_bytes() > before + (1 << 20):  # noqa: ASYNC110  # no event for it
            await asyncio.sleep(0.2)


def object_store_bytes() -> float:
    total = ray.cluster_resources()["object_store_memory"]
    return float(total - ray.available_resources().get("object_store_memory", 0.0))


async def test_draining_says_goodbye(client: Any, url: str, settings: Settings) -> None:
    await add(client, "last", "synthetic:bounce?seed=4")
    async with following(url, "last") as follower:
        await follower.wait_more(1, timeout_s=START_S)
        await asyncio.to_thread(drain, settings)
        await follower.wait_for(lambda: "1012" in follower.ends, timeout_s=5)
        # Sessions end in order: another service on this store need not wait for leases to run out.
        async with asyncio.timeout(_LEASES_BACK_S), opened_store(settings.store) as store:
            while await store.lease_holders():  # noqa: ASYNC110  # nothing tells of a lease's end
                await asyncio.sleep(0.05)
