"""State changes on their way into the log, with and without a store that answers."""

from __future__ import annotations

import asyncio
import threading

import pytest
from doubles import read_bodies, wait_until

from streamer.errors import CapacityError, LeaseLost
from streamer.records import SourceState, StreamSpec
from streamer.sessions.announcer import Announcer
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.unit


class AwayStore(MemoryStore):
    failures = 0

    async def append(self, stream: str, *, lease: str, body: bytes) -> int:
        if self.failures:
            self.failures -= 1
            raise CapacityError("The store restarts.", 0.001)
        return await super().append(stream, lease=lease, body=body)


@pytest.fixture
async def store() -> AwayStore:
    store = AwayStore()
    await store.create_stream("cam", StreamSpec(source="synthetic:x"))
    return store


async def opened(store: AwayStore) -> Announcer:
    return Announcer(store, lease=await store.acquire_lease("cam", owner="here", ttl_s=60))


def numbered(n: int) -> SourceState:
    return SourceState(state="live", reason="filling", have=n, need=99)


async def said(store: AwayStore) -> list[object]:
    return [body["have"] for body in await read_bodies(store, "cam")]


async def test_states_are_said_in_order_and_none_twice_in_a_row(store: AwayStore) -> None:
    announcer = await opened(store)
    for n in (1, 1, 2, 1):
        announcer.report(numbered(n))
    assert announcer.state == numbered(1)
    await announcer.flush()
    await announcer.flush()
    assert await said(store) == [1, 2, 1]


async def test_a_word_about_the_clock_is_said_and_leaves_the_state_alone(store: AwayStore) -> None:
    announcer = await opened(store)
    live = SourceState(state="live")
    for state in (live, SourceState(state="live", reason="clock_skewed"), live):
        announcer.report(state)
    assert announcer.state == live
    await announcer.flush()
    assert [body["reason"] for body in await read_bodies(store, "cam")] == ["", "clock_skewed"]


async def test_what_a_store_did_not_take_waits_and_keeps_its_place(store: AwayStore) -> None:
    announcer = await opened(store)
    store.failures = 3
    running = asyncio.ensure_future(announcer.run())
    threading.Thread(target=announcer.report_from_thread, args=(numbered(1),)).start()
    await wait_until(lambda: store.failures < 3)
    announcer.report(numbered(2))
    # one store that comes back is enough: nothing new has to happen
    await wait_until(lambda: not store.failures)
    async with asyncio.timeout(10):
        await store.wait("cam", after_seq=1, timeout_s=10)
    assert await said(store) == [1, 2]
    running.cancel()


async def test_a_dead_store_does_not_fill_the_memory(store: AwayStore) -> None:
    announcer = await opened(store)
    store.failures = 1
    for n in range(100):
        announcer.report(numbered(n))
    with pytest.raises(CapacityError):
        await announcer.flush()
    assert announcer.dropped == 36
    await announcer.flush()
    assert await said(store) == list(range(36, 100))


async def test_a_lost_lease_is_not_swallowed(store: AwayStore) -> None:
    announcer = await opened(store)
    await store.delete_stream("cam")
    announcer.report(numbered(1))
    async with asyncio.timeout(10):
        with pytest.raises(LeaseLost):
            await announcer.run()
