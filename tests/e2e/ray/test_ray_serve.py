"""`streamer serve` on Ray in a real process: cameras in, a plain client out, replicas killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from feed_follower import following
from local_service import Service, run_streamer, started_service
from media_files import write_video
from process_tree import assert_gone, descendants
from rtsp_camera import RtspCamera
from same_events import assert_same_events

pytestmark = pytest.mark.e2e

START_S = 60.0
EDGE_BACK_S = 10.0
"""Ingest and gateway replicas may be missed for so long."""
MODEL_BACK_S = 20.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that the service may read."""
    return tmp_path_factory.mktemp("videos")


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Service]:
    settings = {
        "STREAMER_SOURCES__ALLOWED_CIDRS": "127.0.0.0/8",
        "STREAMER_SOURCES__ALLOW_FILES": str(folder),
        "STREAMER_SERVING__SURPRISE__ENTER_Z": "4",
        "STREAMER_RAY__READY_S": "90",
    }
    with started_service("--runtime", "ray", "--demo", **settings) as service:
        service.expect(r"demo #\d+ .*surprise")
        yield service
        below = descendants(service.process.pid)
        assert service.interrupt() == 0
        goodbye = next(n for n, line in enumerate(service.lines) if "draining" in line)
        (last,) = service.lines[goodbye + 1 :]
        assert json.loads(last)["message"] == "stopped."
        assert not [line for line in service.lines if "Traceback" in line]
    assert_gone(below)


def replica(service: Service, deployment: str) -> int:
    """The process of a deployment's only replica."""
    pids = [
        pid
        for pid, title in descendants(service.process.pid).items()
        if title.startswith("ray::ServeReplica") and title.split(":")[-1].startswith(deployment)
    ]
    assert len(pids) == 1, descendants(service.process.pid)
    return pids[0]


async def add_camera(service: Service, stream: str, source: str, *, stride_s: float = 0.5) -> None:
    async with httpx2.AsyncClient(base_url=service.url, timeout=20) as client:
        # Two seconds of video per clip, so that a new session has its first clip soon.
        body = {
            "id": stream,
            "source": source,
            "horizons_s": [0.25, 0.5],
            "sampling": {"fps": 8, "frames": 16, "stride_s": stride_s},
        }
        answer = await client.post("/v1/streams", json=body)
        assert answer.status_code == 201, answer.text


def test_nothing_listens_beyond_loopback(service: Service) -> None:
    ours = descendants(service.process.pid).keys() | {service.process.pid}
    assert listening_elsewhere(ours) == []


def test_a_callers_file_gives_what_one_process_gives(service: Service, folder: Path) -> None:
    """With an episode of surprise in it. The next test looks at the gateway that did this."""
    video = str(write_change(folder / "sent.mp4", later=80))
    options = ("--output", "ndjson", "--frames", "16", "--fps", "8", "--stride", "0.25")
    options += ("--horizons", "0.25,0.5")
    there = run_streamer("anticipate", video, "--server", service.url, *options)
    here = run_streamer("anticipate", video, *options, STREAMER_SERVING__SURPRISE__ENTER_Z="4")
    assert (there.returncode, here.returncode) == (0, 0), there.stderr
    assert_same_events(there.stdout.splitlines(), here.stdout.splitlines())
    assert '"type":"surprise"' in there.stdout


def test_only_models_bring_torch(service: Service) -> None:
    """Whatever travels to the others must not be defined beside a model."""
    service.expect(r"demo #\d+ .*surprise")
    for deployment in ("Ingest", "Supervisor", "Gateway"):
        maps = Path(f"/proc/{replica(service, deployment)}/maps").read_text()
        assert "libtorch" not in maps, deployment
    assert "libtorch" in Path(f"/proc/{replica(service, 'Fused')}/maps").read_text()


async def test_what_the_model_sees_is_shown(service: Service) -> None:
    """The session writes one picture, the rollout replica the other, the gateway has both."""
    service.expect(r"demo #\d+ .*surprise")
    async with httpx2.AsyncClient(base_url=f"{service.url}/v1/streams/demo", timeout=20) as client:
        latent, snapshot = await client.get("/latent.png"), await client.get("/snapshot.jpg")
        assert (latent.status_code, latent.content[:4]) == (200, b"\x89PNG"), latent.text
        assert (snapshot.status_code, snapshot.content[:3]) == (200, b"\xff\xd8\xff"), snapshot.text
        assert latent.headers["x-horizons"] == "0, 0.5, 1, 2"


def listening_elsewhere(pids: Any) -> list[str]:
    """Local addresses of these processes' listening sockets that are not loopback."""
    inodes = set()
    for pid in pids:
        try:
            links = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        inodes |= {link[8:-1] for link in links if link.startswith("socket:[")}
    loopback = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            address = local.split(":")[0]
            if state == "0A" and rest[5] in inodes and address not in loopback:
                found.append(local)
    return found


@pytest.mark.parametrize(
    ("deployment", "limit_s"),
    [
        ("Ingest", EDGE_BACK_S),
        ("Gateway", EDGE_BACK_S),
        ("Supervisor", EDGE_BACK_S),
        ("Fused", MODEL_BACK_S),
    ],
)
async def test_a_camera_is_followed_through_the_death_of_a_replica(
    service: Service, deployment: str, limit_s: float
) -> None:
    stream = f"door-{deployment.lower()}"
    with RtspCamera() as camera:
        await add_camera(service, stream, camera.url)
        async with following(service.url, stream) as door, following(service.url, "demo") as demo:
            await door.wait_more(2, timeout_s=START_S)
            os.kill(replica(service, deployment), signal.SIGKILL)
            demo_s, door_s = await asyncio.gather(
                demo.wait_more(2, timeout_s=limit_s), door.wait_more(2, timeout_s=limit_s)
            )
            print(f"{deployment} killed: demo goes on after {demo_s:.1f} s, camera {door_s:.1f} s")
    async with httpx2.AsyncClient(base_url=service.url, timeout=20) as client:
        assert (await client.delete(f"/v1/streams/{stream}")).status_code == 204


async def test_an_episode_of_surprise_is_closed_whoever_dies(
    service: Service, folder: Path
) -> None:
    video = write_change(folder / "change.mp4", later=1600)
    await add_camera(service, "change", f"file://{video}?pace=realtime", stride_s=0.25)
    async with following(service.url, "change") as feed:
        await feed.wait_for(lambda: phases(feed.events), timeout_s=START_S)
        assert phases(feed.events) == [("begin", None)]
        os.kill(replica(service, "Fused"), signal.SIGKILL)
        await feed.wait_more(3, timeout_s=MODEL_BACK_S)
        assert whole(feed.events) == 1, "as surprising as before: one episode is open"
        os.kill(replica(service, "Ingest"), signal.SIGKILL)
        await feed.wait_for(
            lambda: phases(feed.events)[-1] == ("end", "restart"), timeout_s=EDGE_BACK_S
        )
        await feed.wait_more(1, timeout_s=EDGE_BACK_S)
        assert feed.anticipations[-1]["surprise"] is None  # of a session that knows nothing yet
        async with httpx2.AsyncClient(base_url=service.url, timeout=20) as client:
            await client.patch("/v1/streams/change", json={"state": "paused"})
            await feed.wait_for(lambda: feed.events[-1].get("state") == "paused", timeout_s=10)
            found = await client.get("/v1/streams/change/anticipations?types=surprise")
            assert (await client.delete("/v1/streams/change")).status_code == 204
    assert whole(feed.events) == 0
    assert found.json()["events"] == [e for e in feed.events if e["type"] == "surprise"]


def write_change(path: Path, *, later: int) -> Path:
    """A picture full of detail turns grey for good, which even random weights find surprising."""
    detail = np.random.default_rng(0).integers(0, 256, (48, 48, 3), dtype=np.uint8)
    detail = detail.repeat(2, axis=0).repeat(2, axis=1)
    images = [detail] * 80 + [np.full_like(detail, 120)] * later
    return write_video(path, images, fps=8, options={"crf": "10"})


def phases(events: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    """Begins and ends of episodes."""
    told = [event for event in events if event["type"] == "surprise"]
    return [(each["phase"], each["reason"]) for each in told if each["phase"] != "update"]


def whole(events: list[dict[str, Any]]) -> int:
    """How many episodes are open; asserts that nothing is told of one after its end."""
    named, ended = set(), set()
    for event in events:
        name = event.get("episode") or (event.get("surprise") or {}).get("episode")
        if name:
            assert name not in ended, event
            named.add(name)
        if event.get("phase") == "end":
            ended.add(name)
    return len(named - ended)


def test_a_taken_port_is_told_before_ray_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_streamer("serve", "--port", str(port))
    assert done.returncode == 2
    assert f"Port {port}" in done.stderr and "--port" in done.stderr
    assert "starting Ray" not in done.stderr and "Traceback" not in done.stderr


def test_no_ray_at_the_address_is_told() -> None:
    done = run_streamer("serve", "--port", "0", RAY_ADDRESS="127.0.0.1:1")
    assert done.returncode == 2
    assert "RAY_ADDRESS" in done.stderr and "Traceback" not in done.stderr


def test_ctrl_c_while_starting_leaves_nothing() -> None:
    with started_service("--runtime", "ray") as service:
        service.expect("loading model")
        below = descendants(service.process.pid)
        assert any("raylet" in title for title in below.values())
        assert service.interrupt() == 0
        assert json.loads(service.lines[-1])["message"] == "stopped."
    assert_gone(below)
