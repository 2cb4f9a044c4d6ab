"""`streamer serve` over Redis: sessions outlive its absence, services share it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import websockets
from local_service import Service, run_streamer, started_service
from redis_server import RedisServer, free_port, running_redis

pytestmark = pytest.mark.e2e

SOURCE = "synthetic:bounce?seed=3&size=64"
SOON_S = 60.0
SHORT_S = 2.0
LONG_S = 30.0
"""Longer than a lease, and than any pause between two tries."""
TROUBLE_S = 3.0


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server


def settings(server: RedisServer) -> dict[str, str]:
    return {
        "STREAMER_STORE__URL": server.url,
        "STREAMER_SAMPLING__STRIDE_S": "0.5",
        "STREAMER_LOG__FORMAT": "json",
    }


class Client:
    """Follows one stream's feed and comes back with its cursor whenever it is cut off."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.events: list[dict[str, Any]] = []
        self.gaps: list[dict[str, Any]] = []
        self.progress = asyncio.Condition()

    async def run(self, stream: str) -> None:
        while True:
            base = self.service.url.replace("http", "ws")
            after = self.events[-1]["id"] if self.events else "0"
            url = f"{base}/v1/streams/{stream}/feed?after={after}"
            try:
                async with websockets.connect(url, subprotocols=["streamer.v1"]) as socket:
                    async for message in socket:
                        await self._take(json.loads(message))
            except (OSError, websockets.WebSocketException):
                pass
            await asyncio.sleep(0.1)

    async def _take(self, event: dict[str, Any]) -> None:
        async with self.progress:
            if "seq" in event:
                self.events.append(event)
            elif event["type"] == "gap":
                self.gaps.append(event)
            self.progress.notify_all()

    async def more(self, count: int = 3) -> None:
        """Wait for so many further anticipations."""
        async with asyncio.timeout(SOON_S), self.progress:
            goal = self.anticipations + count
            await self.progress.wait_for(lambda: self.anticipations >= goal)

    @property
    def anticipations(self) -> int:
        return sum(event["type"] == "anticipation" for event in self.events)

    def states(self, since: int = 0) -> list[str]:
        return [e["state"] for e in self.events[since:] if e["type"] == "stream.state"]


async def readiness(service: Service, *, wanted: int) -> dict[str, Any]:
    async with asyncio.timeout(SOON_S), httpx2.AsyncClient(base_url=service.url) as http:
        while True:
            answer = await http.get("/readyz")
            if answer.status_code == wanted:
                shown: dict[str, Any] = answer.json()
                return shown
            await asyncio.sleep(0.1)


async def add(service: Service, stream: str) -> httpx2.Response:
    async with httpx2.AsyncClient(base_url=service.url, timeout=20) as http:
        return await http.post("/v1/streams", json={"id": stream, "source": SOURCE})


async def starved(server: RedisServer) -> None:
    await asyncio.to_thread(server.command, "CONFIG", "SET", "maxmemory", "1")
    await asyncio.sleep(TROUBLE_S)
    await asyncio.to_thread(server.command, "CONFIG", "SET", "maxmemory", "0")


async def slowed(server: RedisServer) -> None:
    """Each answer takes up to a third of a second."""
    end = asyncio.get_running_loop().time() + TROUBLE_S
    while asyncio.get_running_loop().time() < end:
        await asyncio.to_thread(server.command, "CLIENT", "PAUSE", "300", "ALL")


async def test_streams_go_on_by_themselves_after_redis_was_in_trouble(server: RedisServer) -> None:
    with started_service(**settings(server)) as service:
        assert (await add(service, "yard")).status_code == 201
        client = Client(service)
        following = asyncio.create_task(client.run("yard"))
        await client.more()

        for away_s, is_over in ((SHORT_S, False), (LONG_S, True)):
            count = len(client.events)
            await asyncio.to_thread(server.stop)
            stopped = asyncio.get_running_loop().time()
            unready = await readiness(service, wanted=503)
            store = next(check for check in unready["checks"] if check["name"] == "store")
            assert not store["ok"] and "out of reach" in store["reason"]
            refused = await add(service, "other")
            assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
            await asyncio.sleep(max(0.0, stopped + away_s - asyncio.get_running_loop().time()))
            await asyncio.to_thread(server.start)
            assert (await readiness(service, wanted=200))["ready"]
            await client.more()
            # After a short absence the same session goes on; after a long one another begins.
            assert ("starting" in client.states(count)) == is_over

        for trouble in (starved, slowed):
            count = len(client.events)
            await trouble(server)
            await client.more()
            assert "starting" not in client.states(count)  # the same session goes on

        seqs = [event["seq"] for event in client.events]
        assert seqs == list(range(1, len(seqs) + 1))
        assert len({event["id"].partition(":")[0] for event in client.events}) == 1
        assert client.gaps == []

        await asyncio.to_thread(server.restart, is_empty=True)
        await readiness(service, wanted=200)
        assert (await add(service, "yard")).status_code == 201
        await client.more()
        assert [gap["reason"] for gap in client.gaps] == ["restart"]
        assert client.events[-1]["seq"] < seqs[-1]
        following.cancel()
        assert service.interrupt() == 0
        assert "Traceback" not in "\n".join(service.lines)


async def test_two_services_share_the_streams_and_adopt_each_others(server: RedisServer) -> None:
    with started_service(**settings(server)) as one, started_service(**settings(server)) as two:
        assert (await add(one, "yard")).status_code == 201
        assert (await add(two, "yard")).status_code == 200
        client = Client(one)
        following = asyncio.create_task(client.run("yard"))
        await client.more()
        async with httpx2.AsyncClient(base_url=two.url, timeout=20) as http:
            owner = (await http.get("/v1/streams/yard")).json()["owner"]
        victim, other = (one, two) if owner == f"local-{one.process.pid}" else (two, one)
        assert owner == f"local-{victim.process.pid}"
        client.service = other
        victim.process.kill()
        await client.more(6)
        following.cancel()
        seqs = [event["seq"] for event in client.events]
        assert seqs == list(range(1, len(seqs) + 1))
        assert client.states().count("starting") >= 2
        async with httpx2.AsyncClient(base_url=other.url, timeout=20) as http:
            assert (await http.get("/v1/streams/yard")).json()["owner"] != owner


def test_a_redis_that_is_not_there_is_explained() -> None:
    url = f"redis://user:hunter2@127.0.0.1:{free_port()}/0"
    done = run_streamer(
        *("serve", "--runtime", "local", "--port", "0"),
        STREAMER_STORE__URL=url,
        STREAMER_STORE__START_S="0.3",
    )
    assert done.returncode not in (0, 2)
    assert "out of reach" in done.stderr
    assert "hunter2" not in done.stderr and "Traceback" not in done.stderr


def test_a_redis_that_refuses_us_is_explained(server: RedisServer) -> None:
    server.command("ACL", "SETUSER", "default", "resetpass", ">right")
    done = run_streamer(
        *("serve", "--runtime", "local", "--port", "0"),
        STREAMER_STORE__URL=server.url,
        STREAMER_STORE__PASSWORD="hunter2",
    )
    assert done.returncode == 2
    assert "store.password" in done.stderr
    assert "hunter2" not in done.stderr and "Traceback" not in done.stderr
