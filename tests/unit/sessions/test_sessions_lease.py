"""The lease of a session is held until nothing of it runs any more."""

from __future__ import annotations

import asyncio
import threading

import pytest
from doubles import TINY, FakePipeline, ScriptedSource, pictures, read_bodies, wait_until

from streamer.records import Sampling, StreamSpec
from streamer.sessions.config import SessionConfig
from streamer.sessions.ending import Ending
from streamer.sessions.session import Session
from streamer.sources.source import Report, Sink
from streamer.store.memory import MemoryStore
from streamer.store.protocol import Lease

pytestmark = pytest.mark.unit

SPEC = StreamSpec(
    source="synthetic:x",
    horizons_s=(0.5,),
    sampling=Sampling(frames=8, fps=4.0, stride_s=0.5),
)
QUICK = SessionConfig(lease_ttl_s=20.0, renew_s=0.01, status_s=0.02, status_ttl_s=20.0)


class CountingStore(MemoryStore):
    renewals = 0

    async def renew_lease(self, lease: Lease, *, ttl_s: float) -> None:
        await super().renew_lease(lease, ttl_s=ttl_s)
        self.renewals += 1


class Hanging(ScriptedSource):
    """A camera that does not answer while it is connected to: it hears a stop only later."""

    def __init__(self) -> None:
        super().__init__(steps=pictures(8))
        self.asked = threading.Event()
        self.answers = threading.Event()

    def run(self, *, sink: Sink, report: Report, stop: threading.Event) -> None:
        stop.wait(10)
        self.asked.set()
        self.answers.wait(10)


@pytest.fixture
async def store() -> CountingStore:
    store = CountingStore()
    await store.create_stream("cam", SPEC)
    return store


async def session(store: MemoryStore, source: Hanging) -> Session:
    return Session(
        await store.get_stream("cam"),
        store=store,
        pipeline=FakePipeline(store=store),
        model=TINY,
        open_source=source,
        owner="here",
        config=QUICK,
    )


async def test_a_lease_is_renewed_while_the_decode_thread_is_waited_for(
    store: CountingStore,
) -> None:
    """Connecting may take as long as a lease lives. A stream that is paused meanwhile says so, and
    nobody else pulls its camera."""
    source = Hanging()
    running = asyncio.ensure_future((await session(store, source)).run())
    await wait_until(lambda: store.renewals > 0)
    await store.set_desired("cam", "paused")
    await wait_until(source.asked.is_set)
    so_far = store.renewals
    await wait_until(lambda: store.renewals > so_far + 3)
    source.answers.set()
    async with asyncio.timeout(10):
        assert await running is Ending.PAUSED
    assert (await read_bodies(store, "cam"))[-1]["state"] == "paused"
    assert await store.lease_holders() == {}


async def test_a_lease_lost_while_the_decode_thread_is_waited_for(store: CountingStore) -> None:
    source = Hanging()
    running = asyncio.ensure_future((await session(store, source)).run())
    await wait_until(lambda: store.renewals > 0)
    await store.set_desired("cam", "paused")
    await wait_until(source.asked.is_set)
    await store.delete_stream("cam")
    source.answers.set()
    async with asyncio.timeout(10):
        assert await running is Ending.LEASE_LOST
