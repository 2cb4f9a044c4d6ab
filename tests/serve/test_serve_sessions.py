"""A session as a long-lived call: how the supervisor's end sees every way in which it can stop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from ray import serve

from deployments.ingest import IngestReplica
from deployments.store import StoreClient, stop_store
from deployments.supervisor import RaySessionHost
from streamer.errors import CapacityError, Conflict, DeadlineExceeded, NotFound, WorkerDied
from streamer.records import StreamSpec
from streamer.sessions.ending import Ending
from streamer.store.config import StoreConfig
from streamer.store.protocol import Lease

pytestmark = pytest.mark.serve

WAIT_S = 20.0


class ScriptedIngest:
    """`run` does what the stream's name says, under a real lease."""

    def __init__(self) -> None:
        self._store = StoreClient(StoreConfig())
        self._running: set[str] = set()

    async def run(self, stream: str) -> AsyncIterator[Lease | Ending | None]:
        if stream == "taken":
            raise Conflict("Somebody else holds the lease.")
        if stream == "unknown":
            raise NotFound("There is no stream 'unknown'.")
        yield None
        lease = await self._store.acquire_lease(stream, owner="scripted", ttl_s=60.0)
        yield lease
        self._running.add(stream)
        try:
            if stream == "eof":
                yield Ending.ENDED
            elif stream == "mute":
                await asyncio.sleep(60)
            elif stream in ("dies", "dies-too"):
                await asyncio.sleep(0.5)  # an item given right before the end may be lost
                os._exit(1)
            elif stream == "live":
                while True:
                    yield lease
                    await asyncio.sleep(0.05)
        finally:
            self._running.discard(stream)

    async def running(self) -> set[str]:
        return self._running


@pytest.fixture(scope="module")
def ingest(cluster: str) -> Any:
    stop_store()
    options = {
        "max_ongoing_requests": 10,
        "health_check_period_s": 1,
        "graceful_shutdown_wait_loop_s": 0.05,
        "graceful_shutdown_timeout_s": 1,
        "ray_actor_options": {"num_cpus": 0.1},
    }
    app = serve.deployment(ScriptedIngest, **options).bind()
    yield serve.run(app, name="scripted", route_prefix=None)
    serve.delete("scripted")
    stop_store()


@pytest.fixture
async def store(ingest: Any) -> StoreClient:
    return StoreClient(StoreConfig())


@pytest.fixture
async def host(ingest: Any, store: StoreClient) -> RaySessionHost:
    for stream in ("eof", "mute", "dies", "live", "vanishes"):
        await store.create_stream(stream, StreamSpec(source="synthetic:bounce"))
    return RaySessionHost(ingest, store=store, first_s=WAIT_S, silence_s=1.0)


async def eventually(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not await condition():  # noqa: ASYNC110  # it is in another process
            await asyncio.sleep(0.05)


async def test_an_ending_is_returned(host: RaySessionHost) -> None:
    assert await host.run("eof") is Ending.ENDED


async def test_refusals_keep_their_class(host: RaySessionHost) -> None:
    with pytest.raises(Conflict):
        await host.run("taken")
    with pytest.raises(NotFound):
        await host.run("unknown")


async def test_silence_ends_the_call_on_both_sides(host: RaySessionHost, ingest: Any) -> None:
    with pytest.raises(DeadlineExceeded, match="silent"):
        await host.run("mute")

    async def is_over() -> bool:
        return "mute" not in await ingest.running.remote()

    await eventually(is_over)


async def test_cancelling_ends_the_session(host: RaySessionHost, ingest: Any) -> None:
    running = asyncio.ensure_future(host.run("live"))

    async def is_running() -> bool:
        return "live" in await ingest.running.remote()

    async def is_over() -> bool:
        return not await is_running()

    await eventually(is_running)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await eventually(is_over)


async def test_stopping_without_an_ending_is_told(host: RaySessionHost) -> None:
    with pytest.raises(CapacityError, match="without saying why"):
        await host.run("vanishes")


async def test_the_lease_of_a_dead_replica_is_free_at_once(
    host: RaySessionHost, store: StoreClient
) -> None:
    with pytest.raises(WorkerDied, match="ingest replica of stream"):
        await host.run("dies")
    assert "dies" not in await store.lease_holders()


class StoreAway:
    """Of a `Store`, what the host uses."""

    async def release_lease(self, lease: Lease) -> None:
        raise CapacityError("The store is out of reach.")


async def test_a_death_is_a_death_while_the_store_is_away(
    host: RaySessionHost, ingest: Any, store: StoreClient
) -> None:
    """Or a stream that kills its process would go unsuspected."""
    await store.create_stream("dies-too", StreamSpec(source="synthetic:bounce"))
    away: Any = StoreAway()
    with pytest.raises(WorkerDied):
        await RaySessionHost(ingest, store=away, first_s=WAIT_S).run("dies-too")


async def test_a_drain_does_not_cut_short_a_session_that_is_ending() -> None:
    """The supervisor's drain came first, and its word is on the way already."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def session() -> Ending:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await go_on.wait()  # as for a decode thread
            ended.append(True)
        raise AssertionError("it was cancelled")

    ended: list[bool] = []
    task = asyncio.create_task(session())
    await begun.wait()
    task.cancel()
    replica = IngestReplica.__new__(IngestReplica)
    replica._sessions = {task}
    draining = asyncio.create_task(replica.drain())
    await asyncio.sleep(0)
    go_on.set()
    async with asyncio.timeout(WAIT_S):
        await draining
    assert ended
