"""Streams that no session serves: quarantined, and without room."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from doubles import read_bodies, wait_for, wait_until

from streamer.backoff import Backoff
from streamer.errors import WorkerDied
from streamer.records import StreamSpec
from streamer.sessions import unserved
from streamer.sessions.config import SupervisorConfig
from streamer.sessions.ending import Ending
from streamer.sessions.supervisor import Supervisor
from streamer.sessions.unserved import Unserved
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.unit

SPEC = StreamSpec(source="synthetic:x")
QUICK = SupervisorConfig(
    poll_s=0.02,
    retry=Backoff(first_s=0.01, jitter=0, cap_s=0.02),
    probation_s=0.1,
    quarantine_s=60.0,
)


class Clock:
    """Only the store's: leases and quarantines end when a test says so."""

    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


class Host:
    """One process: who kills it ends all sessions."""

    def __init__(self, store: MemoryStore, *, killer: str) -> None:
        self.store = store
        self.killer = killer
        self.deaths = 0
        self.opened: list[str] = []
        self._death = asyncio.Event()

    async def run(self, stream: str) -> Ending:
        self.opened.append(stream)
        death = self._death
        lease = await self.store.acquire_lease(stream, owner="host", ttl_s=60)
        try:
            if stream == self.killer:
                self.deaths += 1
                self._death = asyncio.Event()
                death.set()
            await death.wait()
        finally:
            await self.store.release_lease(lease)
        raise WorkerDied("The process died.")


@asynccontextmanager
async def supervised(host: Any, config: SupervisorConfig) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(host.store, host=host, owner="s", config=config)
    running = asyncio.ensure_future(supervisor.run())
    try:
        yield supervisor
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_stream_that_kills_its_process_is_left_alone_and_the_others_live_on() -> None:
    clock = Clock()
    store = MemoryStore(monotonic=clock)
    host = Host(store, killer="bad")
    # Deaths follow each other faster here than any process starts.
    for stream in ("good", "bad", "fine"):
        await store.create_stream(stream, SPEC)

    async def outcome() -> str:
        return (await store.get_stream("bad")).outcome

    async def is_quarantined() -> bool:
        return await outcome() == "quarantined"

    async with supervised(host, QUICK) as supervisor:
        await wait_for(is_quarantined)
        assert host.deaths == 3
        await wait_until(lambda: supervisor.running == {"good", "fine"})
        opened = len(host.opened)
        told = (await read_bodies(store, "bad"))[-1]
        assert (told["state"], told["reason"]) == ("failed", "quarantined")
        assert told["retry_in_s"] == 60.0
        assert "died 3 times within 60 s" in str(told["detail"])
        assert await read_bodies(store, "good") == await read_bodies(store, "fine") == []
        assert "bad" not in await store.lease_holders()
        clock.now_ns = 61 * 10**9
        await wait_until(lambda: len(host.opened) > opened)
        assert host.opened[opened] == "bad"
        # Released on probation: one more death is enough.
        await wait_until(lambda: host.deaths == 4)
        await wait_for(is_quarantined)
        await store.set_desired("bad", "live")
        await wait_until(lambda: host.deaths == 5)
        await wait_for(is_quarantined)
        await wait_until(lambda: supervisor.running == {"good", "fine"})
        assert host.deaths == 5


async def test_a_quarantine_outlives_its_supervisor() -> None:
    clock = Clock()
    store = MemoryStore(monotonic=clock)
    await store.create_stream("bad", SPEC)
    assert await Unserved(store, owner="first", config=QUICK).quarantine("bad")
    host = Host(store, killer="bad")
    async with supervised(host, QUICK):
        await store.create_stream("good", SPEC)
        await wait_until(lambda: host.opened == ["good"])
        clock.now_ns = 61 * 10**9
        await wait_until(lambda: "bad" in host.opened)


async def test_a_pause_during_quarantine_stays_a_pause() -> None:
    clock = Clock()
    store = MemoryStore(monotonic=clock)
    await store.create_stream("bad", SPEC)
    speaker = Unserved(store, owner="s", config=QUICK)
    await speaker.quarantine("bad")
    seen = [await store.get_stream("bad")]
    await store.set_desired("bad", "paused")
    clock.now_ns = 61 * 10**9
    await speaker.release(seen)  # it had looked before the pause
    record = await store.get_stream("bad")
    assert (record.desired, record.outcome) == ("paused", "")


async def test_nobody_is_sentenced_who_is_served_elsewhere() -> None:
    store = MemoryStore()
    await store.create_stream("bad", SPEC)
    speaker = Unserved(store, owner="s", config=QUICK)
    lease = await store.acquire_lease("bad", owner="another", ttl_s=60)
    assert not await speaker.quarantine("bad")
    assert await read_bodies(store, "bad") == []
    await store.release_lease(lease)
    await store.delete_stream("bad")
    assert await speaker.quarantine("bad")  # nothing is left to be done


class LookedAt(MemoryStore):
    """Counts how often supervisors look."""

    looks = 0

    async def lease_holders(self) -> dict[str, str]:
        self.looks += 1
        return await super().lease_holders()


class Patient:
    """Sessions that last."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    async def run(self, stream: str) -> Ending:
        lease = await self.store.acquire_lease(stream, owner="host", ttl_s=60)
        try:
            await asyncio.Event().wait()
        finally:
            await self.store.release_lease(lease)
        raise AssertionError


async def test_streams_without_room_are_told_once_by_whomever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unserved, "_PATIENCE_NS", 0)
    store = LookedAt()
    for stream in "ab":
        await store.create_stream(stream, SPEC)
    full = replace(QUICK, max_sessions=1)
    first, second = Patient(store), Patient(store)
    async with supervised(first, full) as one, supervised(second, full) as two:
        await wait_until(lambda: len(one.running) == len(two.running) == 1)
        await store.create_stream("c", SPEC)

        async def is_told() -> bool:
            return len(await read_bodies(store, "c")) > 0

        await wait_for(is_told)
        looks = store.looks
        await wait_until(lambda: store.looks > looks + 6)  # both have looked again
        (body,) = await read_bodies(store, "c")
        assert (body["state"], body["reason"]) == ("starting", "no_capacity")
        assert "c" not in await store.lease_holders()


async def test_a_moment_without_room_is_nothing_to_talk_about() -> None:
    store = MemoryStore()
    await store.create_stream("a", SPEC)
    speaker = Unserved(store, owner="s", config=QUICK)
    told: list[int] = []
    for now_s, left_out in ((0, "a"), (2, "a"), (3, ""), (4, "a"), (6, "a"), (8, "a"), (9, "a")):
        await speaker.tell(left_out=left_out, on_probation=(), now_ns=now_s * 10**9)
        told.append(len(await read_bodies(store, "a")))
    assert told == [0, 0, 0, 0, 0, 1, 1]


async def test_who_waits_for_a_search_to_end_is_told_why() -> None:
    store = MemoryStore()
    await store.create_stream("a", SPEC)
    speaker = Unserved(store, owner="s", config=QUICK)
    for now_s in (0, 5):
        await speaker.tell(left_out=(), on_probation=("a",), now_ns=now_s * 10**9)
    (body,) = await read_bodies(store, "a")
    assert (body["state"], body["reason"]) == ("starting", "probation")
