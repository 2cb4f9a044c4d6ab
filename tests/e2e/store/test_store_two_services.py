"""Two services on one Redis, real cameras: each camera is pulled by one, whoever dies or hangs."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from feed_follower import following
from local_service import Service, started_service
from redis_server import RedisServer, running_redis
from rtsp_camera import RtspCamera

pytestmark = pytest.mark.e2e

SOON_S = 60.0
LEASE_S = 5.0
TAKEN_OVER_S = LEASE_S + 10.0
"""The lease's end, a look at the leases, a connection, and two seconds of video for a clip."""
CAMERAS = 3


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server


@pytest.fixture
def cameras() -> Iterator[dict[str, RtspCamera]]:
    with ExitStack() as stack:
        yield {f"door{n}": stack.enter_context(RtspCamera()) for n in range(CAMERAS)}


@contextmanager
def started_pair(server: RedisServer, **more: str) -> Iterator[tuple[Service, Service]]:
    settings = {
        "STREAMER_STORE__URL": server.url,
        "STREAMER_SOURCES__ALLOWED_CIDRS": "127.0.0.0/8",
        "STREAMER_LOG__FORMAT": "json",
        **more,
    }
    with started_service(**settings) as one, started_service(**settings) as two:
        assert one.url != two.url
        yield one, two


@pytest.fixture
def services(server: RedisServer) -> Iterator[tuple[Service, Service]]:
    with started_pair(server) as services:
        yield services


def owner_name(service: Service) -> str:
    return f"local-{service.process.pid}"


def connections(camera: RtspCamera) -> int:
    """Open RTSP connections, as the kernel counts them on the camera's side."""
    local = f"0100007F:{camera.port:04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(row[1] == local and row[3] == "01" for row in rows)


class Watch:
    """Looks all the time how many pull each camera, and who says that it runs which stream."""

    def __init__(self, service: Service, cameras: dict[str, RtspCamera]) -> None:
        self.service = service
        self.most = dict.fromkeys(cameras, 0)
        self.owners: dict[str, list[str]] = {stream: [] for stream in cameras}
        self._cameras = cameras

    async def run(self) -> None:
        async with httpx2.AsyncClient(timeout=20) as http:
            while True:
                for stream, camera in self._cameras.items():
                    self.most[stream] = max(self.most[stream], connections(camera))
                page = (await http.get(f"{self.service.url}/v1/streams")).json()
                for view in page["streams"]:
                    owners = self.owners[view["id"]]
                    if view["owner"] and view["owner"] not in owners[-1:]:
                        owners.append(view["owner"])
                await asyncio.sleep(0.02)


@asynccontextmanager
async def watched(service: Service, cameras: dict[str, RtspCamera]) -> AsyncIterator[Watch]:
    watch = Watch(service, cameras)
    running = asyncio.ensure_future(watch.run())
    try:
        yield watch
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.wait({running})


async def add(service: Service, stream: str, source: str) -> None:
    body = {
        "id": stream,
        "source": source,
        "horizons_s": [0.25, 0.5],
        "sampling": {"fps": 8, "frames": 16, "stride_s": 0.5},
    }
    async with httpx2.AsyncClient(base_url=service.url, timeout=20) as http:
        answer = await http.post("/v1/streams", json=body)
        assert answer.status_code == 201, answer.text


async def shown(service: Service, stream: str) -> dict[str, Any]:
    async with httpx2.AsyncClient(base_url=service.url, timeout=20) as http:
        view: dict[str, Any] = (await http.get(f"/v1/streams/{stream}")).json()
        return view


async def until(condition: Callable[[], Awaitable[bool]], *, timeout_s: float = SOON_S) -> float:
    """Wait for it; seconds that took."""
    began = time.monotonic()
    async with asyncio.timeout(timeout_s):
        while not await condition():  # noqa: ASYNC110  # it is in another process
            await asyncio.sleep(0.05)
    return time.monotonic() - began


def leases(server: RedisServer) -> list[bytes]:
    found: list[bytes] = server.command("KEYS", "*:lease")
    return found


async def test_each_camera_is_pulled_once_and_taken_over_when_its_service_dies(
    server: RedisServer, services: tuple[Service, Service], cameras: dict[str, RtspCamera]
) -> None:
    one, two = services
    names = {owner_name(service): service for service in services}
    for n, (stream, camera) in enumerate(cameras.items()):
        await add(services[n % 2], stream, camera.url)

    async def all_live() -> bool:
        views = [await shown(one, stream) for stream in cameras]
        return all(view["state"] == "live" and not view["reason"] for view in views)

    async with watched(one, cameras) as watch:
        await until(all_live)
        first = {stream: (await shown(one, stream))["owner"] for stream in cameras}
    victim = names[first["door0"]]
    other = two if victim is one else one
    lost = [stream for stream, owner in first.items() if owner == owner_name(victim)]

    async with watched(other, cameras) as later, following(other.url, "door0") as door:
        await door.wait_more(3, timeout_s=SOON_S)
        killed = time.monotonic()
        victim.process.kill()
        waited_s = await door.wait_more(3, timeout_s=TAKEN_OVER_S)

        async def all_taken() -> bool:
            views = [await shown(other, stream) for stream in cameras]
            return all(v["owner"] == owner_name(other) and v["state"] == "live" for v in views)

        await until(all_taken, timeout_s=TAKEN_OVER_S)
        print(
            f"service with {len(lost)} of {CAMERAS} cameras killed: next event after"
            f" {waited_s:.1f} s, all taken over after {time.monotonic() - killed:.1f} s"
        )
        await door.wait_more(3, timeout_s=SOON_S)
    assert watch.most == later.most == dict.fromkeys(cameras, 1)
    for stream in cameras:
        # Nothing is passed back and forth.
        seen = [first[stream], owner_name(other)] if stream in lost else [owner_name(other)]
        assert later.owners[stream] == seen
        assert watch.owners[stream] == [first[stream]]
    assert other.interrupt() == 0
    assert leases(server) == []
    assert [connections(camera) for camera in cameras.values()] == [0] * CAMERAS
    assert not [line for line in other.lines if "Traceback" in line]


async def test_a_service_that_stops_hands_its_cameras_over_at_once(
    server: RedisServer, services: tuple[Service, Service], cameras: dict[str, RtspCamera]
) -> None:
    camera = cameras["door0"]
    await add(services[0], "door0", camera.url)
    async with following(services[0].url, "door0") as door:
        await door.wait_more(2, timeout_s=SOON_S)
        owner = (await shown(services[0], "door0"))["owner"]
    leaving = next(service for service in services if owner_name(service) == owner)
    staying = next(service for service in services if service is not leaving)
    async with following(staying.url, "door0") as door:
        await door.wait_more(2, timeout_s=SOON_S)
        leaving.process.send_signal(signal.SIGINT)

        async def is_taken() -> bool:
            return (await shown(staying, "door0"))["owner"] == owner_name(staying)

        print(f"service stopped: taken over after {await until(is_taken, timeout_s=10):.1f} s")
        assert leaving.process.wait(30) == 0
        await door.wait_more(2, timeout_s=SOON_S)
    assert connections(camera) == 1
    assert staying.interrupt() == 0
    assert leases(server) == []


async def test_a_service_that_hangs_for_longer_than_its_lease_writes_nothing_more(
    services: tuple[Service, Service], cameras: dict[str, RtspCamera]
) -> None:
    camera = cameras["door0"]
    await add(services[0], "door0", camera.url)
    async with following(services[0].url, "door0") as door:
        await door.wait_more(2, timeout_s=SOON_S)
        owner = (await shown(services[0], "door0"))["owner"]
    zombie = next(service for service in services if owner_name(service) == owner)
    other = next(service for service in services if service is not zombie)
    async with following(other.url, "door0") as door:
        await door.wait_more(2, timeout_s=SOON_S)
        zombie.process.send_signal(signal.SIGSTOP)
        try:
            waited_s = await door.wait_more(2, timeout_s=TAKEN_OVER_S)
            begun = [e["seq"] for e in door.events if e.get("reason") == "opening"]
        finally:
            zombie.process.send_signal(signal.SIGCONT)
        zombie.expect(r'"ending": ?"lease_lost"', timeout_s=10)

        async def is_alone() -> bool:
            return connections(camera) == 1

        alone_s = await until(is_alone, timeout_s=15)
        print(f"hung service: next event after {waited_s:.1f} s; alone again after {alone_s:.1f} s")
        await door.wait_more(6, timeout_s=SOON_S)
        # Whoever writes begins with these words: only two ever did.
        opened = [e["seq"] for e in door.events if e.get("reason") == "opening"]
        assert opened == begun and len(opened) == 2
        # Capture times of one session only go forward; the zombie's pictures are older.
        times = [e["capture_time"] for e in door.anticipations if e["seq"] > opened[1]]
        assert times == sorted(times)
        assert (await shown(other, "door0"))["owner"] == owner_name(other)
    said = [json.loads(line) for line in zombie.lines if line.startswith("{")]
    assert [e["message"] for e in said].count("session opened") == 1


async def test_a_stream_beyond_all_room_says_so_and_begins_when_there_is_some(
    server: RedisServer,
) -> None:
    with started_pair(server, STREAMER_SUPERVISOR__MAX_SESSIONS="1") as (one, two):
        for n, service in enumerate((one, two, one)):
            await add(service, f"yard{n}", "synthetic:bounce?seed=3&size=64")

        async def views() -> dict[str, dict[str, Any]]:
            return {f"yard{n}": await shown(two, f"yard{n}") for n in range(3)}

        async def is_told() -> bool:
            reasons = [view["reason"] for view in (await views()).values()]
            return reasons.count("no_capacity") == 1

        await until(is_told, timeout_s=20)
        found = await views()
        (left,) = (s for s, view in found.items() if view["reason"] == "no_capacity")
        assert (found[left]["state"], found[left]["owner"]) == ("starting", None)
        owners = {view["owner"] for stream, view in found.items() if stream != left}
        assert owners == {owner_name(one), owner_name(two)}  # one each
        async with following(one.url, left) as follower:
            await follower.wait_for(lambda: follower.events, timeout_s=10)
            assert follower.events[0]["reason"] == "no_capacity"
            other = next(stream for stream in found if stream != left)
            async with httpx2.AsyncClient(base_url=one.url, timeout=20) as http:
                await http.patch(f"/v1/streams/{other}", json={"state": "paused"})
            waited_s = await follower.wait_more(1, timeout_s=20)
            print(
                f"first event of a stream that had no room: {waited_s:.1f} s after there was some"
            )
        assert (await shown(one, left))["owner"] == found[other]["owner"]
        # Neither spins: each says once that it has no room for how many.
        for service in (one, two):
            assert sum("streams without room" in line for line in service.lines) <= 4
