"""Streams under a supervisor on Ray and Redis: one that kills its process, changes while they run,
and the supervisor's own death."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from feed_follower import following
from local_service import Service, started_service
from process_tree import descendants, is_running
from redis_server import RedisServer, running_redis

pytestmark = pytest.mark.e2e

START_S = 60.0
BACK_S = 10.0
"""A stream whose ingest replica died through no fault of its own is missed for so long at most."""
QUARANTINE_S = 20.0
SOURCE = "synthetic:bounce?seed=3&size=64"


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server


@pytest.fixture(scope="module")
def service(redis: RedisServer) -> Iterator[Service]:
    settings = {
        "STREAMER_STORE__URL": redis.url,
        "STREAMER_RAY__READY_S": "90",
        "STREAMER_SUPERVISOR__QUARANTINE_S": str(QUARANTINE_S),
    }
    with started_service("--runtime", "ray", **settings) as service:
        yield service
        assert service.interrupt() == 0
        assert not [line for line in service.lines if "Traceback" in line]
    assert redis.command("KEYS", "*:lease") == []


class Api:
    def __init__(self, service: Service) -> None:
        self._http = httpx2.AsyncClient(base_url=service.url, timeout=20)

    async def add(self, stream: str) -> None:
        body = {"id": stream, "source": SOURCE, "sampling": {"stride_s": 0.5}}
        assert (await self._http.post("/v1/streams", json=body)).status_code == 201

    async def show(self, stream: str) -> dict[str, Any]:
        view: dict[str, Any] = (await self._http.get(f"/v1/streams/{stream}")).json()
        return view

    async def change(self, stream: str, **change: Any) -> dict[str, Any]:
        answer = await self._http.patch(f"/v1/streams/{stream}", json=change)
        assert answer.status_code == 200, answer.text
        view: dict[str, Any] = answer.json()
        return view

    async def close(self, *streams: str) -> None:
        for stream in streams:
            assert (await self._http.delete(f"/v1/streams/{stream}")).status_code == 204
        await self._http.aclose()


async def until(condition: Callable[[], Awaitable[Any]], *, timeout_s: float) -> float:
    """Wait for it; seconds that took."""
    began = time.monotonic()
    async with asyncio.timeout(timeout_s):
        while not await condition():  # noqa: ASYNC110  # it is in another process
            await asyncio.sleep(0.05)
    return time.monotonic() - began


class Poison:
    """What a stream with a broken video does to a decoder: whenever its session has begun, the
    process dies in which it runs."""

    def __init__(self, redis: RedisServer, stream: str) -> None:
        self.kills = 0
        self._redis = redis
        self._key = f"streamer:{{{stream}}}:lease"

    async def run(self) -> None:
        last = b""
        while True:
            lease = await asyncio.to_thread(self._redis.command, "GET", self._key)
            if lease and lease != last and (found := re.search(rb" Ingest#\w+@(\d+)$", lease)):
                last = lease
                os.kill(int(found[1]), signal.SIGKILL)
                self.kills += 1
            await asyncio.sleep(0.02)


@asynccontextmanager
async def poisoned(redis: RedisServer, stream: str) -> AsyncIterator[Poison]:
    poison = Poison(redis, stream)
    running = asyncio.ensure_future(poison.run())
    try:
        yield poison
        assert not running.done(), running.result()
    finally:
        running.cancel()
        await asyncio.wait({running})


async def test_a_stream_that_kills_its_process_is_quarantined_and_its_neighbours_live_on(
    service: Service, redis: RedisServer
) -> None:
    api = Api(service)
    await api.add("good")
    async with following(service.url, "good") as good:
        await good.wait_more(2, timeout_s=START_S)
        began = time.monotonic()
        async with poisoned(redis, "bad") as poison:
            await api.add("bad")
            await api.add("late")  # as young, and innocent

            async def is_quarantined() -> bool:
                return (await api.show("bad"))["outcome"] == "quarantined"

            await until(is_quarantined, timeout_s=60)
            found_s = time.monotonic() - began
            assert poison.kills == 3
            view = await api.show("bad")
            assert (view["state"], view["reason"]) == ("failed", "quarantined")
            assert 0 < view["retry_in_s"] <= QUARANTINE_S
            back_s = await good.wait_more(2, timeout_s=BACK_S)
            async with following(service.url, "late") as late:
                await late.wait_more(2, timeout_s=BACK_S)
            for innocent in ("good", "late"):
                assert (await api.show(innocent))["outcome"] == ""
            # At once by hand, on probation: one more death, and it is back where it was.
            await api.change("bad", state="live")
            await until(is_quarantined, timeout_s=30)
            assert poison.kills == 4
            await good.wait_more(2, timeout_s=BACK_S)
        silences = [after - before for before, after in zip(good.at, good.at[1:], strict=False)]
        print(
            f"a stream that kills its process is found after 3 deaths in {found_s:.1f} s;"
            f" its neighbour was silent for {max(silences):.1f} s at most, {back_s:.1f} s at last"
        )
        # It does not kill any more: after its time it is tried again by itself.
        async with following(service.url, "bad") as bad:
            await bad.wait_more(2, timeout_s=QUARANTINE_S + 30)
            told = [e for e in bad.events if e.get("reason") == "quarantined"]
            assert [e["retry_in_s"] for e in told] == [QUARANTINE_S] * 2
        await good.wait_more(2, timeout_s=BACK_S)
    assert max(silences) < 2 * BACK_S
    await api.close("good", "bad", "late")


async def test_a_running_session_takes_a_change_with_its_next_clip(service: Service) -> None:
    api = Api(service)
    await api.add("yard")
    async with following(service.url, "yard") as yard:
        await yard.wait_more(3, timeout_s=START_S)
        asked = time.monotonic()
        wanted = await api.change("yard", horizons_s=[0.5, 3.0], mode="gap")

        def foretells() -> list[float]:
            return [future["horizon_s"] for future in yard.anticipations[-1]["futures"]]

        await yard.wait_for(lambda: foretells() == [0.5, 3.0], timeout_s=BACK_S)
        print(f"other horizons after {time.monotonic() - asked:.1f} s")

        async def is_applied() -> bool:
            return (await api.show("yard"))["applied_revision"] == wanted["revision"]

        await until(is_applied, timeout_s=5)
        await yard.wait_more(2, timeout_s=BACK_S)
        assert [e["reason"] for e in yard.events if e.get("state") == "starting"] == ["opening"]
        assert yard.anticipations[-1]["surprise"] is not None
        asked = time.monotonic()
        await api.change("yard", sampling={"fps": 8, "frames": 32})
        await yard.wait_for(
            lambda: yard.anticipations[-1]["window"]["fps"] == 8.0, timeout_s=BACK_S
        )
        print(f"another sampling after {time.monotonic() - asked:.1f} s")
        await yard.wait_more(2, timeout_s=BACK_S)
    await api.close("yard")


async def replaced_supervisor(service: Service) -> None:
    """Kill it, and wait until another one is at work."""
    (victim,) = supervisors(service)
    os.kill(victim, signal.SIGKILL)

    async def is_replaced() -> bool:
        return supervisors(service) not in ([], [victim])

    async def is_ready() -> bool:
        async with httpx2.AsyncClient(base_url=service.url, timeout=20) as http:
            return (await http.get("/readyz")).status_code == 200

    back_s = await until(is_replaced, timeout_s=30)
    print(f"supervisor killed: another one after {back_s:.1f} s")
    await until(is_ready, timeout_s=30)


def lease(redis: RedisServer, stream: str) -> bytes | None:
    found: bytes | None = redis.command("GET", f"streamer:{{{stream}}}:lease")
    return found


async def test_sessions_are_adopted_when_their_supervisor_dies(
    service: Service, redis: RedisServer
) -> None:
    api = Api(service)
    await api.add("porch")
    async with following(service.url, "porch") as porch:
        await porch.wait_more(2, timeout_s=START_S)
        before = lease(redis, "porch")
        await replaced_supervisor(service)
        # Longer than a lease: whoever nobody renews is opened anew by then.
        await porch.wait_more(14, timeout_s=START_S)
        assert lease(redis, "porch") == before
        assert [e["reason"] for e in porch.events if e.get("state") == "starting"] == ["opening"]
        # And what it is told it does, also without a supervisor that opened it.
        await api.change("porch", state="paused")

        async def is_paused() -> bool:
            view = await api.show("porch")
            return view["state"] == "paused" and view["owner"] is None

        await until(is_paused, timeout_s=BACK_S)
    await api.close("porch")


async def test_a_stop_gives_back_the_leases_of_adopted_sessions_too(
    service: Service, redis: RedisServer
) -> None:
    """The last one here: it stops the service."""
    api = Api(service)
    await api.add("hall")
    await api.close()
    async with following(service.url, "hall") as hall:
        await hall.wait_more(2, timeout_s=START_S)
    await replaced_supervisor(service)
    held = lease(redis, "hall")
    assert held is not None and (found := re.search(rb"@(\d+)$", held))
    service.process.send_signal(signal.SIGINT)

    async def is_free() -> bool:
        return lease(redis, "hall") is None

    free_s = await until(is_free, timeout_s=30)
    print(f"stop: lease of an adopted session given back after {free_s:.1f} s")
    assert is_running(int(found[1]))  # given back, not run out after its process was killed
    assert await asyncio.to_thread(service.process.wait, 30) == 0


def supervisors(service: Service) -> list[int]:
    return [
        pid
        for pid, title in descendants(service.process.pid).items()
        if title.startswith("ray::ServeReplica") and title.split(":")[-1].startswith("Supervisor")
    ]
