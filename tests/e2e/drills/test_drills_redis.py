"""Redis goes away under a service on Ray, for less and for more than a lease."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx2
import pytest
from crowd import small_stream
from feed_follower import following
from local_service import started_service
from redis_server import running_redis

pytestmark = pytest.mark.e2e

SHORT_S = 3.0
LONG_S = 12.0
"""More than a lease of 5 s."""
TOLD_S = 15.0
BACK_S = 30.0


async def test_redis_away_for_less_and_for_more_than_a_lease() -> None:
    with running_redis() as redis:
        settings = {
            "STREAMER_STORE__URL": redis.url,
            "STREAMER_RAY__READY_S": "120",
            "STREAMER_LOG__LEVEL": "error",
        }
        with started_service("--runtime", "ray", **settings) as service:
            async with httpx2.AsyncClient(base_url=service.url, timeout=20) as http:
                answer = await http.post("/v1/streams", json={"id": "yard", **small_stream(seed=3)})
                assert answer.status_code == 201, answer.text
                async with (
                    following(service.url, "yard") as one,
                    following(service.url, "yard") as two,
                ):
                    await one.wait_more(3, timeout_s=60)
                    for away_s in (SHORT_S, LONG_S):
                        began = time.monotonic()
                        before = len(one.events)
                        await asyncio.to_thread(redis.stop)
                        store = await unready(http)
                        told_s = time.monotonic() - began
                        await asyncio.sleep(max(0.0, began + away_s - time.monotonic()))
                        await asyncio.to_thread(redis.start)
                        back = time.monotonic()
                        event_s = await one.wait_more(3, timeout_s=BACK_S)
                        await two.wait_more(2, timeout_s=BACK_S)
                        await ready(http)
                        print(
                            f"Redis away for {away_s:g} s: told after {told_s:.1f} s"
                            f" ({store['reason']}); next event {event_s:.1f} s after it was back,"
                            f" ready after {time.monotonic() - back:.1f} s"
                        )
                        states = [e.get("state") for e in one.events[before:]]
                        # The same session goes on, or another one begins.
                        assert ("starting" in states) == (away_s == LONG_S), states
            assert service.interrupt() == 0
            assert not [line for line in service.lines if "Traceback" in line]


async def unready(http: httpx2.AsyncClient) -> dict[str, Any]:
    """The failed check of the store."""
    async with asyncio.timeout(TOLD_S):
        while True:
            answer = await http.get("/readyz")
            if answer.status_code == 503:
                checks = answer.json()["checks"]
                found: dict[str, Any] = next(c for c in checks if c["name"] == "store")
                assert not found["ok"]
                return found
            await asyncio.sleep(0.1)


async def ready(http: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(BACK_S):
        while (await http.get("/readyz")).status_code != 200:  # noqa: ASYNC110  # elsewhere
            await asyncio.sleep(0.1)
