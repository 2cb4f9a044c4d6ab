"""The reconcile loop and its decision."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest
from doubles import wait_for, wait_until

from streamer.backoff import Backoff
from streamer.errors import CapacityError, ConfigError, Conflict
from streamer.records import StreamRecord, StreamSpec
from streamer.sessions.config import SupervisorConfig
from streamer.sessions.ending import Ending
from streamer.sessions.plan import Retries, Turns, decide
from streamer.sessions.supervisor import Supervisor
from streamer.store.memory import MemoryStore
from streamer.store.protocol import Lease, Presence

pytestmark = pytest.mark.unit

S = 10**9
SPEC = StreamSpec(source="synthetic:x")
QUICK = SupervisorConfig(
    poll_s=0.02, retry=Backoff(first_s=0.01, jitter=0, cap_s=0.02), cancel_after_s=0.05
)


def record(stream: str, **changes: object) -> StreamRecord:
    return StreamRecord(stream=stream, spec=SPEC, **changes)  # type: ignore[arg-type]


def test_only_what_is_wanted_and_free_is_opened() -> None:
    records = [
        record("ended", outcome="ended"),
        record("failed", outcome="failed"),
        record("held"),
        record("new"),
        record("paused", desired="paused"),
        record("running"),
        record("waiting"),
    ]
    decision = decide(
        records,
        held={"held", "running"},
        running=["running", "paused", "deleted", "ended"],
        waiting={"waiting"},
        max_sessions=9,
    )
    assert decision.to_open == ("new",)
    assert decision.unwanted == ("paused", "deleted", "ended")


def test_no_more_sessions_than_allowed() -> None:
    records = [record(name) for name in "abcde"]
    decision = decide(records, held=(), running=["a"], waiting=(), max_sessions=3)
    assert decision.to_open == ("b", "c")
    assert decision.left_out == ("d", "e")


def test_streams_beyond_our_share_are_left_to_others_for_a_moment() -> None:
    turns = Turns(courtesy_s=1)
    due = ("a", "b", "c")
    assert turns.take(due, running=0, share=2, now_ns=0) == ("a", "b")
    assert turns.take(("c", "d"), running=2, share=2, now_ns=S // 2) == ()
    assert turns.take(("c", "d"), running=2, share=2, now_ns=S) == ("c",)
    assert turns.take(("d",), running=3, share=2, now_ns=3 * S // 2) == ("d",)
    assert turns.take(("c",), running=1, share=1, now_ns=2 * S) == ()  # it was taken in between
    assert Turns(courtesy_s=1).take(due, running=5, share=8, now_ns=0) == due  # alone


async def test_two_supervisors_share_what_comes(store: MemoryStore) -> None:
    hosts = [Host(store), Host(store)]
    supervisors = [
        Supervisor(store, host=host, owner=f"s{n}", config=replace(QUICK, poll_s=2.0))
        for n, host in enumerate(hosts)
    ]
    running = [asyncio.ensure_future(supervisor.run()) for supervisor in supervisors]

    async def both_present() -> bool:
        return len(await store.present("supervisor")) == 2

    await wait_for(both_present)
    for n in range(6):
        await store.create_stream(f"s{n}", SPEC)
    await wait_until(lambda: sum(len(each.running) for each in supervisors) == 6)

    async def all_held() -> bool:
        return len(await store.lease_holders()) == 6

    await wait_for(all_held)
    assert [len(each.running) for each in supervisors] == [3, 3]
    for each in running:
        each.cancel()
    await asyncio.gather(*running, return_exceptions=True)


def test_waits_grow_and_a_good_end_forgets_them() -> None:
    retries = Retries(backoff=Backoff(first_s=1, jitter=0, cap_s=8), healthy_s=30)
    waits = []
    for _ in range(5):
        retries.ended("a", None, ran_s=0, now_ns=0)
        waits.append(next(s for s in range(1, 99) if not retries.waiting(now_ns=s * 10**9)))
    assert waits == [1, 2, 4, 8, 8]
    retries.ended("a", Ending.PAUSED, ran_s=0, now_ns=0)
    assert retries.waiting(now_ns=0) == set()
    retries.ended("a", None, ran_s=31, now_ns=0)
    assert retries.waiting(now_ns=10**9 - 1) == {"a"}
    assert retries.waiting(now_ns=10**9) == set()


def test_what_was_interrupted_waits_for_a_moment_however_often() -> None:
    retries = Retries(backoff=Backoff(first_s=1, jitter=0, cap_s=8), healthy_s=30)
    for now_s in range(0, 50, 10):
        retries.ended("a", None, ran_s=0, now_ns=now_s * 10**9)
        retries.interrupted("a", now_ns=now_s * 10**9)
        assert retries.waiting(now_ns=now_s * 10**9 + 10**9 - 1) == {"a"}
        assert retries.waiting(now_ns=now_s * 10**9 + 10**9) == set()


def test_what_broke_is_forgotten_with_its_stream() -> None:
    retries = Retries(backoff=Backoff(first_s=9, jitter=0), healthy_s=30)
    for stream in "ab":
        retries.ended(stream, None, ran_s=0, now_ns=0)
    retries.keep({"b", "c"})
    assert retries.waiting(now_ns=0) == {"b"}


@dataclass
class Host:
    """Sessions that last until told otherwise."""

    store: MemoryStore
    opened: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    """Raised by the next sessions, one each."""
    is_deaf: bool = False
    """Sessions do not follow the registry."""

    async def run(self, stream: str) -> Ending:
        self.opened.append(stream)
        if self.errors:
            raise self.errors.pop(0)
        lease = await self.store.acquire_lease(stream, owner="host", ttl_s=60)
        try:
            seen = -1
            while self.is_deaf or (await self.store.get_stream(stream)).desired == "live":
                seen = await self.store.wait_registry(seen=seen, timeout_s=1)
            return Ending.PAUSED
        except asyncio.CancelledError:
            self.cancelled.append(stream)
            raise
        finally:
            await self.store.release_lease(lease)


@pytest.fixture
async def store() -> MemoryStore:
    return MemoryStore()


async def test_streams_run_pause_and_run_again(store: MemoryStore) -> None:
    host = Host(store)
    supervisor = Supervisor(store, host=host, owner="s1", config=QUICK)
    running = asyncio.ensure_future(supervisor.run())
    await store.create_stream("a", SPEC)
    await store.create_stream("b", SPEC)
    await wait_until(lambda: supervisor.running == {"a", "b"})
    assert [p.replica for p in await store.present("supervisor")] == ["s1"]
    await store.set_desired("a", "paused")
    await wait_until(lambda: supervisor.running == {"b"})
    await store.set_desired("a", "live")
    await wait_until(lambda: supervisor.running == {"a", "b"})
    assert host.opened == ["a", "b", "a"]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(host.cancelled) == ["a", "b"]
    assert await store.lease_holders() == {}


@pytest.mark.parametrize("error", [Conflict("held"), CapacityError("full"), ZeroDivisionError()])
async def test_a_broken_session_is_opened_again_and_harms_no_other(
    store: MemoryStore, error: Exception
) -> None:
    host = Host(store)
    supervisor = Supervisor(store, host=host, owner="s1", config=QUICK)
    await store.create_stream("good", SPEC)
    running = asyncio.ensure_future(supervisor.run())
    await wait_until(lambda: supervisor.running == {"good"})
    host.errors += [error, error]
    await store.create_stream("bad", SPEC)
    await wait_until(lambda: host.opened.count("bad") == 3)
    assert supervisor.running == {"good", "bad"}
    assert host.opened.count("good") == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_stream_served_elsewhere_is_adopted_when_its_lease_runs_out(
    store: MemoryStore,
) -> None:
    await store.create_stream("a", SPEC)
    lease = await store.acquire_lease("a", owner="another", ttl_s=60)
    host = Host(store)
    running = asyncio.ensure_future(Supervisor(store, host=host, owner="s", config=QUICK).run())

    async def is_present() -> bool:
        return bool(await store.present("supervisor"))

    await wait_for(is_present)
    assert host.opened == []
    await store.release_lease(lease)
    await wait_until(lambda: host.opened == ["a"])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_deaf_session_is_cancelled(store: MemoryStore) -> None:
    host = Host(store, is_deaf=True)
    await store.create_stream("a", SPEC)
    running = asyncio.ensure_future(Supervisor(store, host=host, owner="s", config=QUICK).run())
    await wait_until(lambda: host.opened == ["a"])
    await store.set_desired("a", "paused")
    await wait_until(lambda: host.cancelled == ["a"])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_session_that_takes_its_time_to_end_is_cancelled_once() -> None:
    passes = 0

    class Slow(Host):
        async def run(self, stream: str) -> Ending:
            try:
                return await super().run(stream)
            except asyncio.CancelledError:
                until = passes + 5
                await wait_until(lambda: passes > until)
                self.opened.append("closed")
                raise

    class Counting(MemoryStore):
        async def lease_holders(self) -> dict[str, str]:
            nonlocal passes
            passes += 1
            return await super().lease_holders()

    store = Counting()
    host = Slow(store, is_deaf=True)
    await store.create_stream("a", SPEC)
    running = asyncio.ensure_future(Supervisor(store, host=host, owner="s", config=QUICK).run())
    await wait_until(lambda: host.opened == ["a"])
    await store.set_desired("a", "paused")
    await wait_until(lambda: host.opened == ["a", "closed"])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class RacyStore(MemoryStore):
    """While the registry is read for the first time, another supervisor's session ends."""

    lease: Lease
    passes = 0

    async def list_streams(self, *, after: str = "", limit: int = 1000) -> list[StreamRecord]:
        found = await super().list_streams(after=after, limit=limit)
        self.passes += 1
        if self.passes == 1:
            await self.finish_stream("a", lease=self.lease.token, outcome="ended")
            await self.release_lease(self.lease)
        return found


async def test_a_session_that_ends_during_a_look_is_not_opened_again() -> None:
    store = RacyStore()
    await store.create_stream("a", SPEC)
    store.lease = await store.acquire_lease("a", owner="another", ttl_s=60)
    host = Host(store)
    running = asyncio.ensure_future(Supervisor(store, host=host, owner="s", config=QUICK).run())
    await wait_until(lambda: store.passes > 2)
    assert host.opened == []
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class FlakyStore(MemoryStore):
    failures = 2

    async def announce(self, presence: Presence, *, ttl_s: float) -> None:
        if self.failures:
            self.failures -= 1
            raise CapacityError("The store restarts.")
        await super().announce(presence, ttl_s=ttl_s)


async def test_a_store_that_is_away_for_a_moment_ends_nothing() -> None:
    store = FlakyStore()
    host = Host(store)
    await store.create_stream("a", SPEC)
    running = asyncio.ensure_future(Supervisor(store, host=host, owner="s", config=QUICK).run())
    await wait_until(lambda: host.opened == ["a"])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("wrong", [{"poll_s": 9.0}, {"max_sessions": 0}, {"cancel_after_s": 0}])
def test_configs_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        SupervisorConfig(**wrong)  # type: ignore[arg-type]
