"""All cameras of a site lose power at once and come back together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import httpx2
import pytest
from crowd import steady_usage
from feed_follower import Follower, following
from local_service import started_service
from rtsp_camera import RtspCamera

pytestmark = pytest.mark.e2e

CAMERAS = 20
AT_ONCE = 4
"""Processes started together, on two cores."""
POOL = 8
"""Threads of pools, which their first use brings and which stay."""
DOWN_S = 3.0
START_S = 60.0
BACK_S = 30.0
SETTINGS = {
    "STREAMER_SOURCES__ALLOWED_CIDRS": "127.0.0.0/8",
    "STREAMER_LOG__LEVEL": "error",
}


@pytest.fixture
def cameras() -> Iterator[list[RtspCamera]]:
    site = [RtspCamera(fps=5, width=64, height=48) for _ in range(CAMERAS)]
    try:
        at_once(site, RtspCamera.start)
        yield site
    finally:
        at_once(site, lambda camera: camera.__exit__(None, None, None))


def at_once(site: Iterable[RtspCamera], do: Callable[[RtspCamera], object]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(do, site))


async def test_twenty_cameras_reboot_together(cameras: list[RtspCamera]) -> None:
    with started_service(**SETTINGS) as service:
        root = service.process.pid
        before = await steady_usage(root)
        async with httpx2.AsyncClient(base_url=service.url, timeout=20) as http:
            async with AsyncExitStack() as stack:
                feeds = []
                for number, camera in enumerate(cameras):
                    await add(http, f"cam-{number}", camera.url)
                    feed = following(service.url, f"cam-{number}")
                    feeds.append(await stack.enter_async_context(feed))
                await all_of(feeds, lambda feed: feed.anticipations, timeout_s=START_S)
                pauses = await reboot(cameras, feeds)
                assert_spread(pauses)
                await generations_rose(http)
            # `following` has asserted that each feed is whole.
            for number in range(CAMERAS):
                assert (await http.delete(f"/v1/streams/cam-{number}")).status_code == 204
        slack = replace(before, threads=before.threads + POOL, fds=before.fds + 2)
        after = await steady_usage(root, at_most=slack)
        print(f"before {before}\nafter  {after}")
        assert after.processes == before.processes
        assert after.threads <= slack.threads
        assert after.fds <= slack.fds
        assert service.interrupt() == 0
        assert not [line for line in service.lines if "Traceback" in line]


async def reboot(cameras: list[RtspCamera], feeds: list[Follower]) -> list[float]:
    """All down, all up, all live and anticipated again; the pauses that were told before tries."""
    known = {feed: len(feed.events) for feed in feeds}
    for camera in cameras:
        camera.kill()
    await all_of(feeds, lambda feed: "reconnecting" in states(feed, known[feed]))
    await asyncio.sleep(DOWN_S)  # so long the power is away
    await asyncio.to_thread(at_once, cameras, RtspCamera.start)
    up = time.monotonic()
    await all_of(feeds, lambda feed: "live" in states(feed, known[feed]))
    live = sorted(live_at(feed, known[feed]) - up for feed in feeds)
    await asyncio.gather(*(feed.wait_more(1, timeout_s=BACK_S) for feed in feeds))
    again_s = time.monotonic() - up
    pauses = [
        event["retry_in_s"]
        for feed in feeds
        for event in feed.events[known[feed] :]
        if event.get("retry_in_s") is not None
    ]
    print(
        f"{CAMERAS} cameras back: live {live[0]:.1f} to {live[-1]:.1f} s after the last one"
        f" listened, all anticipated again after {again_s:.1f} s; {len(pauses)} pauses from"
        f" {min(pauses):.2f} to {max(pauses):.2f} s"
    )
    return pauses


async def all_of(
    feeds: list[Follower], condition: Callable[[Follower], object], *, timeout_s: float = BACK_S
) -> None:
    """Wait until it holds for each."""
    waits = (feed.wait_for(partial(condition, feed), timeout_s=timeout_s) for feed in feeds)
    await asyncio.gather(*waits)


async def add(http: httpx2.AsyncClient, stream: str, source: str) -> None:
    body = {
        "id": stream,
        "source": source,
        "horizons_s": [0.5],
        "sampling": {"fps": 4, "frames": 4, "stride_s": 0.5},
    }
    answer = await http.post("/v1/streams", json=body)
    assert answer.status_code == 201, answer.text


def states(feed: Follower, since: int) -> list[str]:
    return [event["state"] for event in feed.events[since:] if event["type"] == "stream.state"]


def live_at(feed: Follower, since: int) -> float:
    """When it was first told live again, monotonic seconds."""
    told = zip(feed.events[since:], feed.at[since:], strict=True)
    return next(at for event, at in told if event.get("state") == "live")


def assert_spread(pauses: list[float]) -> None:
    """No thundering herd: the pauses before tries differ from camera to camera."""
    assert len({round(pause, 3) for pause in pauses}) >= CAMERAS, pauses
    buckets = [round(pause, 1) for pause in pauses]
    assert max(buckets.count(bucket) for bucket in set(buckets)) <= len(pauses) / 2, pauses


async def generations_rose(http: httpx2.AsyncClient) -> None:
    found = [(await http.get(f"/v1/streams/cam-{n}")).json()["generation"] for n in range(CAMERAS)]
    print(f"generations {sorted(found)}")
    assert 1 <= min(found) <= max(found) <= 2, found
