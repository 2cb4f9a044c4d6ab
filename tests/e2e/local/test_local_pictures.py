"""Snapshots and latent pictures of a service in a real process, by HTTP and on the feed."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
import websockets
from local_service import Service, run_streamer, started_service
from media_files import write_video
from PIL import Image

from streamer.events.schema import server_message
from streamer.worlds.registry import make_world
from streamer.worlds.world import Stage

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with started_service("--demo", STREAMER_SAMPLING__STRIDE_S="0.5") as service:
        service.expect(r"demo #\d+ .*surprise")
        yield service


def image(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as found:
        return np.asarray(found.convert("RGB"))


async def taken(client: httpx2.AsyncClient, path: str, *, since: str = "") -> httpx2.Response:
    """The picture there, once there is one that was captured then or later."""
    async with asyncio.timeout(20):
        while True:
            picture = await client.get(path)
            if picture.headers.get("x-capture-time", "") >= (since or "0"):
                return picture


async def shown(url: str, *, count: int) -> list[dict[str, Any]]:
    """Anticipations and their pictures from the feed, until so many pictures came."""
    found: list[dict[str, Any]] = []
    address = f"{url.replace('http', 'ws', 1)}/v1/streams/demo/feed?picture=true"
    async with websockets.connect(address, subprotocols=["streamer.v1"]) as socket:
        while sum(each["type"] == "latent.picture" for each in found) < count:
            message = await socket.recv()
            server_message.validate_json(message)
            found.append(json.loads(message))
    return found


async def test_a_frame_and_its_latent_belong_together(service: Service) -> None:
    async with httpx2.AsyncClient(base_url=f"{service.url}/v1/streams/demo", timeout=20) as client:
        # A world's past is one clip, made at once: of its end there may be no snapshot.
        first = (await taken(client, "/snapshot.jpg")).headers["x-capture-time"]
        latent = await taken(client, "/latent.png?scale=1", since=first)
        assert (latent.status_code, image(latent.content).shape) == (200, (4, 4, 3)), latent.text
        assert latent.headers["x-horizons"] == "0, 0.5, 1, 2"
        captured = latent.headers["x-capture-time"]
        # The clip's last frame may be written a moment later.
        await taken(client, "/snapshot.jpg", since=captured)
        snapshot = await client.get("/snapshot.jpg", params={"at": captured})
        assert snapshot.headers["x-capture-time"] <= captured
        frame = image(snapshot.content)
        assert frame.shape == (64, 64, 3)
        assert len(snapshot.content) <= 32_768
        assert frame.std() > 5  # a scene, not a grey field
        again = await client.get("/latent.png", params={"at": captured, "scale": 1})
        assert again.content == latent.content
        strip = await client.get("/latent.png?strip=true")
        assert image(strip.content).shape[0] == 256
        missing = await client.get("/latent.png?horizon_s=9")
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


async def test_the_feed_shows_what_http_shows(service: Service) -> None:
    found = await shown(service.url, count=3)
    anticipations = {e["seq"]: e for e in found if e["type"] == "anticipation"}
    pictures = [e for e in found if e["type"] == "latent.picture"]
    async with httpx2.AsyncClient(base_url=f"{service.url}/v1/streams/demo", timeout=20) as client:
        for picture in pictures:
            event = anticipations[picture["anticipation"]]
            assert picture["capture_time"] == event["capture_time"]
            horizons_s = [panel["horizon_s"] for panel in picture["panels"]]
            assert horizons_s == [0.0, *(future["horizon_s"] for future in event["futures"])]
            for panel in picture["panels"]:
                query = {"at": event["capture_time"], "horizon_s": panel["horizon_s"], "scale": 1}
                answer = await client.get("/latent.png", params=query)
                data = base64.b64decode(panel["png"].partition(",")[2])
                assert np.array_equal(image(answer.content), image(data))


async def test_one_thing_has_one_colour(service: Service) -> None:
    """Most of the demo's scene does not move: its colours must not, either."""
    pictures = [e for e in await shown(service.url, count=4) if e["type"] == "latent.picture"]
    seen = [
        image(base64.b64decode(each["panels"][0]["png"].partition(",")[2])).astype(int)
        for each in pictures
    ]
    change = np.abs(np.diff(seen, axis=0)).max(axis=(0, 3))
    assert np.median(change) < 12, change


async def test_switched_off_there_is_none() -> None:
    off = {"STREAMER_SESSION__SNAPSHOTS": "false", "STREAMER_SERVING__PICTURES__ENABLED": "false"}
    with started_service("--demo", **off) as service:
        service.expect(r"demo #\d+ .*surprise")
        async with httpx2.AsyncClient(base_url=service.url, timeout=20) as client:
            for name in ("snapshot.jpg", "latent.png"):
                answer = await client.get(f"/v1/streams/demo/{name}")
                assert answer.status_code == 404, answer.text


def test_a_file_is_illustrated(tmp_path: Path) -> None:
    video = tmp_path / "clip.mp4"
    world = make_world("bounce", seed=1, stage=Stage(height=64, width=64, fps=10))
    write_video(video, [world.render(i) for i in range(200)])
    folder = tmp_path / "pictures"
    done = run_streamer("anticipate", str(video), "--output", "ndjson", "--pictures", str(folder))
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    seqs = [event["seq"] for event in events if event["type"] == "anticipation"]
    assert [file.name for file in sorted(folder.iterdir())] == [
        f"{seq:06d}_frame_now_0.5s_1s_2s.png" for seq in seqs
    ]
    assert f"{len(seqs)} pictures in {folder}" in done.stderr
    for file in folder.iterdir():
        assert image(file.read_bytes()).shape == (256, 5 * 256 + 4 * 4, 3)
