"""Drills on a running Ray: feeds come and go, a rolling redeploy under open feeds, a dead store."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from crowd import Crowd, small_stream, steady_usage
from feed_follower import Follower, following
from local_service import Service, child_environment, started_service
from process_tree import assert_gone, descendants

from deployments.object_store import find_object_store

pytestmark = pytest.mark.e2e

REDEPLOY = Path(__file__).with_name("redeploy.py")
SETTINGS = {"STREAMER_RAY__READY_S": "120", "STREAMER_SAMPLING__STRIDE_S": "0.5"}
START_S = 60.0
BACK_S = 60.0
FEEDS = 50


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with started_service("--runtime", "ray", "--demo", **SETTINGS) as service:
        service.expect(r"demo #\d+ .*surprise")
        yield service
        below = descendants(service.process.pid)
        assert service.interrupt() == 0
        assert not [line for line in service.lines if "Traceback" in line]
    assert_gone(below)


async def test_streams_and_feeds_come_and_go_without_a_trace(service: Service) -> None:
    root = service.process.pid
    stored = find_object_store([root, *descendants(root)])
    crowd = Crowd(service.url, streams=4, feeds=10)
    await crowd.cycle()  # the first of its kind loads and opens what stays
    before, stored_before = await steady_usage(root), stored()
    for _ in range(2):
        await crowd.cycle()
    slack = replace(before, threads=before.threads + 4, fds=before.fds + 8)
    after = await steady_usage(root, at_most=slack)
    print(f"before {before}\nafter  {after}\nobject store {stored_before} -> {stored()} bytes")
    assert after.processes <= before.processes
    assert after.threads <= slack.threads
    assert after.fds <= slack.fds
    async with asyncio.timeout(BACK_S):
        while stored() > stored_before + (4 << 20):  # noqa: ASYNC110  # in another process
            await asyncio.sleep(0.2)


async def test_a_rolling_redeploy_under_fifty_feeds(service: Service) -> None:
    async with AsyncExitStack() as stack:
        feeds = [
            await stack.enter_async_context(following(service.url, "demo")) for _ in range(FEEDS)
        ]
        await asyncio.gather(*(feed.wait_more(2, timeout_s=START_S) for feed in feeds))
        old = replicas(service)
        began = time.monotonic()
        await redeployed(service, STREAMER_FEED__HEARTBEAT_S="4")
        took_s = time.monotonic() - began
        await asyncio.gather(*(feed.wait_more(3, timeout_s=BACK_S) for feed in feeds))
        silences = sorted(feed.longest_silence_s(since=began) for feed in feeds)
        new = replicas(service)
        ends = {end for feed in feeds for end in feed.ends}
        print(
            f"redeploy took {took_s:.1f} s; {FEEDS} feeds without an event for"
            f" {silences[0]:.1f} to {silences[-1]:.1f} s; sockets ended with {sorted(ends)}"
        )
        assert all(feed.ends for feed in feeds)  # they were cut, and came back
        assert len(new - old) >= 4  # gateway, supervisor, ingest and models are new
        assert silences[-1] < BACK_S
    # `following` has asserted that each of the fifty has every number once, and no gap.


def replicas(service: Service) -> set[int]:
    """Processes of Serve replicas."""
    titles = descendants(service.process.pid)
    return {pid for pid, title in titles.items() if title.startswith("ray::ServeReplica")}


async def redeployed(service: Service, **changed: str) -> None:
    """Deploy again with other settings, as a new version of the service would be."""
    title = next(t for t in descendants(service.process.pid).values() if "/raylet " in t)
    address = title.partition("--gcs-address=")[2].split()[0]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(REDEPLOY), address),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=child_environment(SETTINGS | changed | {"RAY_AUTH_MODE": "token"}),
    )
    out, _ = await process.communicate()
    assert process.returncode == 0 and b"deployed" in out, out.decode()


async def test_a_dead_store_begins_a_new_epoch(service: Service) -> None:
    """Last in this file: the streams of the service are gone afterwards, as documented."""
    yard = {"id": "yard", **small_stream(seed=1)}
    async with httpx2.AsyncClient(base_url=service.url, timeout=20) as http:
        assert (await accepted(http, yard)).status_code == 201
        feed = Epochs(service.url, "yard")
        running = asyncio.ensure_future(feed.run())
        await feed.wait_events(5)
        old = Epochs(service.url, "yard", after=feed.events[2]["id"])
        stores = [p for p, t in descendants(service.process.pid).items() if "MemoryStore" in t]
        assert len(stores) == 1
        os.kill(stores[0], signal.SIGKILL)
        began = time.monotonic()
        await answers(http, "/v1/streams/yard", 404)
        told_s = time.monotonic() - began
        assert (await accepted(http, yard)).status_code == 201
        await feed.wait_restart()
        await feed.wait_events(3)
        back_s = time.monotonic() - began
        await answers(http, "/readyz", 200)
        ready_s = time.monotonic() - began
        resuming = asyncio.ensure_future(old.run())
        await old.wait_restart()
        await old.wait_events(3)
    for task in (running, resuming):
        task.cancel()
    await asyncio.wait({running, resuming})
    print(
        f"store killed: empty after {told_s:.1f} s, registered and events again after"
        f" {back_s:.1f} s, ready after {ready_s:.1f} s; the connected feed ended with {feed.ends}"
    )
    for reader, epochs in ((feed, 2), (old, 1)):
        assert [gap["reason"] for gap in reader.gaps] == ["restart"]
        assert len(reader.epochs) == epochs
        for numbers in reader.epochs.values():
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert back_s < BACK_S


class Epochs(Follower):
    """A follower that outlives an epoch: after `gap restart` it forgets its numbers."""

    def __init__(self, base_url: str, stream: str, *, after: str = "0") -> None:
        super().__init__(base_url, stream)
        self.first = after

    @property
    def epochs(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for event in self.events:
            found.setdefault(event["id"].partition(":")[0], []).append(event["seq"])
        return found

    async def wait_events(self, more: int) -> None:
        goal = len(self.events) + more
        await self.wait_for(lambda: len(self.events) >= goal, timeout_s=BACK_S)

    async def wait_restart(self) -> None:
        await self.wait_for(lambda: self.gaps, timeout_s=BACK_S)


async def answers(http: httpx2.AsyncClient, path: str, status: int) -> None:
    """Wait until a GET is answered so."""
    async with asyncio.timeout(BACK_S):
        while (await http.get(path)).status_code != status:  # noqa: ASYNC110  # elsewhere
            await asyncio.sleep(0.1)


async def accepted(http: httpx2.AsyncClient, body: dict[str, Any]) -> httpx2.Response:
    """POST a stream until the store takes it."""
    async with asyncio.timeout(BACK_S):
        while True:
            answer = await http.post("/v1/streams", json=body)
            if answer.status_code < 500:
                return answer
            await asyncio.sleep(0.1)
