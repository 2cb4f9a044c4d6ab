"""A Redis that came back with less than was seen of it, or with all: is the epoch honest?

Real servers: restarts, an append-only file that lost its end, a replica that lagged and took over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis_server import RedisServer, free_port, running_redis

from streamer.records import StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.protocol import Lease, LogSlice
from streamer.store.redis import RedisStore

pytestmark = pytest.mark.e2e

SPEC = StreamSpec(source="synthetic:bounce?seed=1")
SOON_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Service:
    """Processes of one service: who writes first, who follows, and one that looks rarely."""

    writer: RedisStore
    reader: RedisStore
    stranger: RedisStore


@asynccontextmanager
async def service(url: str) -> AsyncIterator[Service]:
    async with AsyncExitStack() as stack:
        opened = [RedisStore(StoreConfig(url=url)) for _ in range(3)]
        for store in opened:
            stack.push_async_callback(store.close)
        yield Service(writer=opened[0], reader=opened[1], stranger=opened[2])


async def begun(of: Service, count: int = 5) -> tuple[Lease, str]:
    """A stream with events that everybody saw; lease and epoch."""
    await of.writer.create_stream("kitchen", SPEC)
    lease = await of.writer.acquire_lease("kitchen", owner="here", ttl_s=600)
    await fill(of.writer, lease, count)
    epochs = {await epoch_of(store) for store in (of.writer, of.reader, of.stranger)}
    assert len(epochs) == 1
    return lease, epochs.pop()


async def fill(store: RedisStore, lease: Lease, count: int) -> list[int]:
    return [await store.append(lease.stream, lease=lease.token, body=b"{}") for _ in range(count)]


async def epoch_of(store: RedisStore) -> str:
    return (await store.read("kitchen", after_seq=0)).epoch


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A primary and its replica, and the address under which clients find the one in charge."""

    primary: RedisServer
    replica: RedisServer
    address: Path

    @property
    def url(self) -> str:
        return f"unix://{self.address}?db=0"

    def point_at(self, server: RedisServer) -> None:
        self.address.unlink(missing_ok=True)
        self.address.symlink_to(server.folder / "redis.sock")

    def follow(self) -> None:
        """Have the replica follow, and return when it has everything."""
        self.replica.command("REPLICAOF", "127.0.0.1", str(self.primary.port))
        self.replica.await_replica_of(self.primary)

    def lag(self) -> None:
        """What is there now the replica has; from now on it gets nothing more."""
        self.replica.await_replica_of(self.primary)
        self.replica.command("REPLICAOF", "127.0.0.1", str(free_port()))

    async def fail_over(self) -> None:
        await asyncio.to_thread(self.primary.stop)
        self.replica.command("REPLICAOF", "NO", "ONE")
        self.point_at(self.replica)


@pytest.fixture
def pair() -> Iterator[Pair]:
    at_once = {"repl-diskless-sync-delay": "0"}
    with running_redis(**at_once) as primary, running_redis(**at_once) as replica:
        found = Pair(primary=primary, replica=replica, address=primary.folder / "in-charge")
        found.point_at(primary)
        found.follow()
        yield found


async def cut_off(server: RedisServer, *, num_bytes: int) -> None:
    """A power cut: the append-only file lost its end."""
    await asyncio.to_thread(server.stop)
    (kept,) = server.folder.glob("appendonlydir/*.incr.aof")
    kept.write_bytes(kept.read_bytes()[:-num_bytes])
    await asyncio.to_thread(server.start)


# something was lost -----------------------------------------------------------------------------
async def test_a_lost_event_is_noticed_after_its_number_was_given_again(pair: Pair) -> None:
    async with service(pair.url) as of:
        lease, epoch = await begun(of)
        pair.lag()
        await fill(of.writer, lease, 3)
        assert (await of.reader.read("kitchen", after_seq=5)).head_seq == 8
        await pair.fail_over()
        assert await fill(of.stranger, lease, 6) == [6, 7, 8, 9, 10, 11]
        log = await of.reader.read("kitchen", after_seq=8)
        assert log.epoch != epoch
        assert {await epoch_of(store) for store in (of.writer, of.stranger)} == {log.epoch}


async def test_who_wrote_what_was_lost_notices_it_by_writing(pair: Pair) -> None:
    async with service(pair.url) as of:
        lease, epoch = await begun(of)
        pair.lag()
        await fill(of.writer, lease, 1)
        await pair.fail_over()
        await fill(of.stranger, lease, 2)
        assert await epoch_of(of.stranger) == epoch
        await fill(of.writer, lease, 1)
        assert await epoch_of(of.stranger) != epoch


async def test_a_wait_notices_it_too(pair: Pair) -> None:
    async with service(pair.url) as of:
        lease, epoch = await begun(of)
        pair.lag()
        await fill(of.writer, lease, 1)
        await of.reader.read("kitchen", after_seq=0)
        await pair.fail_over()
        await fill(of.stranger, lease, 1)
        await of.reader.wait("kitchen", after_seq=6, timeout_s=0)
        assert await epoch_of(of.stranger) != epoch


async def test_who_asks_nothing_notices_it_when_its_news_come_back(pair: Pair) -> None:
    async with service(pair.url) as of:
        lease, epoch = await begun(of)
        await of.reader.wait_registry(seen=0, timeout_s=0.1)  # listens from now on
        pair.lag()
        await fill(of.writer, lease, 1)
        await of.reader.read("kitchen", after_seq=0)
        await pair.fail_over()
        await fill(of.stranger, lease, 2)
        async with asyncio.timeout(SOON_S):
            while True:
                if await of.stranger.epoch() != epoch:
                    break
                await asyncio.sleep(0.02)


async def test_what_another_stream_lost_counts(pair: Pair) -> None:
    """Of the stream itself nothing was lost, but the log is one."""
    async with service(pair.url) as of:
        lease, epoch = await begun(of)
        await of.writer.create_stream("yard", SPEC)
        yard = await of.writer.acquire_lease("yard", owner="here", ttl_s=600)
        pair.lag()
        await fill(of.writer, yard, 1)
        await pair.fail_over()
        await fill(of.stranger, lease, 3)
        assert await epoch_of(of.writer) != epoch


async def test_a_restart_that_lost_the_end_is_noticed_after_it_was_written_over() -> None:
    with running_redis() as server:
        async with service(server.url) as of:
            lease, epoch = await begun(of)
            await fill(of.writer, lease, 3)
            assert (await of.reader.read("kitchen", after_seq=0)).head_seq == 8
            await cut_off(server, num_bytes=700)
            given = await fill(of.stranger, lease, 6)
            assert 5 < given[0] < 9 < given[-1]
            assert await epoch_of(of.stranger) == epoch
            assert await epoch_of(of.reader) != epoch


async def test_an_old_primary_that_took_appends_meanwhile_is_noticed(pair: Pair) -> None:
    """Both sides of a parted network gave numbers; one of them is given up."""
    async with service(pair.url) as of:
        lease, epoch = await begun(of)
        pair.replica.await_replica_of(pair.primary)
        pair.replica.command("REPLICAOF", "NO", "ONE")
        await fill(of.writer, lease, 2)
        pair.point_at(pair.replica)
        await of.stranger.connection.client.connection_pool.disconnect()
        assert await fill(of.stranger, lease, 4) == [6, 7, 8, 9]
        pair.primary.command("REPLICAOF", "127.0.0.1", str(pair.replica.port))
        pair.primary.await_replica_of(pair.replica)
        await asyncio.to_thread(pair.replica.stop)
        pair.primary.command("REPLICAOF", "NO", "ONE")
        pair.point_at(pair.primary)
        await fill(of.stranger, lease, 1)
        assert await epoch_of(of.stranger) == epoch
        assert await fill(of.writer, lease, 1) == [11]
        assert await epoch_of(of.stranger) != epoch


async def test_a_copy_from_before_the_newest_epoch_is_noticed() -> None:
    with running_redis() as server:
        async with service(server.url) as of:
            lease, first = await begun(of)
            copy = taken(server)
            await fill(of.writer, lease, 1)
            put_back(server, copy)
            second = await epoch_of(of.writer)  # it noticed
            assert second != first
            assert await epoch_of(of.reader) == second
            put_back(server, copy)
            assert await fill(of.stranger, lease, 3) == [6, 7, 8]
            assert await epoch_of(of.reader) not in (first, second)


def taken(server: RedisServer) -> dict[bytes, bytes]:
    return {key: server.command("DUMP", key) for key in server.command("KEYS", "*")}


def put_back(server: RedisServer, copy: dict[bytes, bytes]) -> None:
    """As a restart from an old copy would."""
    server.command("FLUSHALL")
    for key, value in copy.items():
        server.command("RESTORE", key, "0", value)
    rename(server)


def rename(server: RedisServer) -> None:
    """Give it another replication id, as a restart would."""
    server.command("REPLICAOF", "127.0.0.1", "1")
    server.command("REPLICAOF", "NO", "ONE")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "read", "wait", "copy", "put back", "restart"]),
        st.integers(0, 2),
    ),
    max_size=30,
)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with running_redis(appendonly="no") as server:
        yield server


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
def test_no_process_is_ever_shown_two_events_of_one_id(
    server: RedisServer, steps: list[tuple[str, int]]
) -> None:
    asyncio.run(play(server, steps))


async def play(server: RedisServer, steps: list[tuple[str, int]]) -> None:
    """Any mix of appends, looks, restarts and old copies put back, against what is right."""
    server.command("FLUSHALL")
    async with service(server.socket_url) as of:
        processes = [Process(of.writer), Process(of.reader), Process(of.stranger)]
        await of.writer.create_stream("kitchen", SPEC)
        lease = await of.writer.acquire_lease("kitchen", owner="here", ttl_s=600)
        copies = [taken(server)]
        for number, (what, which) in enumerate(steps):
            process = processes[which]
            match what:
                case "append":
                    await process.append(lease, body=b'{"n":%d}' % number)
                case "read":
                    await process.read()
                case "wait":
                    await process.store.wait("kitchen", after_seq=10**6, timeout_s=0)
                case "copy":
                    copies.append(taken(server))
                case "put back":
                    put_back(server, copies[which % len(copies)])
                case "restart":
                    rename(server)
        if not any(what == "put back" for what, _ in steps):
            assert len({epoch for each in processes for epoch, _ in each.shown}) <= 1
        for process in processes:
            await process.read()


class Process:
    """Keeps what it was shown, and never accepts something else under the same id."""

    def __init__(self, store: RedisStore) -> None:
        self.store = store
        self.shown: dict[tuple[str, int], bytes] = {}

    async def append(self, lease: Lease, *, body: bytes) -> None:
        seq = await self.store.append("kitchen", lease=lease.token, body=body)
        log = await self.store.read("kitchen", after_seq=seq - 1)
        assert log.entries[0].body == body
        self._keep(log)

    async def read(self) -> None:
        self._keep(await self.store.read("kitchen", after_seq=0))

    def _keep(self, log: LogSlice) -> None:
        for entry in log.entries:
            assert self.shown.setdefault((log.epoch, entry.seq), entry.body) == entry.body


# nothing was lost -------------------------------------------------------------------------------
async def test_a_takeover_that_lost_nothing_changes_nothing(pair: Pair) -> None:
    async with service(pair.url) as of:
        lease, epoch = await begun(of)
        pair.replica.await_replica_of(pair.primary)
        await pair.fail_over()
        assert await fill(of.stranger, lease, 2) == [6, 7]
        assert await epoch_of(of.reader) == epoch
        assert await fill(of.writer, lease, 1) == [8]
        assert {await epoch_of(store) for store in (of.writer, of.stranger)} == {epoch}


@pytest.mark.parametrize("asks", ["append", "read"])
async def test_restarts_that_lost_nothing_change_nothing(asks: str) -> None:
    with running_redis() as server:
        async with service(server.url) as of:
            lease, epoch = await begun(of)
            for number in range(6, 9):
                await asyncio.to_thread(server.restart)
                if asks == "append":
                    assert await fill(of.stranger, lease, 1) == [number]
                else:
                    assert await epoch_of(of.stranger) == epoch
            assert await epoch_of(of.reader) == epoch
            await fill(of.writer, lease, 1)
            assert await epoch_of(of.writer) == epoch


async def test_lives_of_servers_are_bounded_and_unknown_ones_are_not_trusted() -> None:
    with running_redis() as server:
        async with service(server.url) as of:
            lease, epoch = await begun(of)
            for _ in range(105):
                rename(server)
                await fill(of.writer, lease, 1)
            assert server.command("LLEN", "streamer:lives") == 100
            assert await epoch_of(of.writer) == epoch
            assert await epoch_of(of.reader) != epoch  # it had seen a life no longer remembered
            assert server.command("LLEN", "streamer:lives") == 0


async def test_full_memory_after_a_restart_does_not_stop_reading() -> None:
    with running_redis() as server:
        async with service(server.url) as of:
            _, epoch = await begun(of)
            await asyncio.to_thread(server.restart)
            server.command("CONFIG", "SET", "maxmemory", "1")
            assert await epoch_of(of.reader) == epoch


async def test_a_server_that_may_not_be_asked_still_shows_a_head_that_fell() -> None:
    """Without the right to INFO a loss is only noticed until it is written over."""
    with running_redis() as server:
        rules = ["on", ">pw", "~streamer:*", "&streamer:*", "+@all", "-@dangerous", "-@admin"]
        server.command("ACL", "SETUSER", "app", "reset", *rules)
        async with service(server.url.replace("//", "//app:pw@")) as of:
            lease, epoch = await begun(of)
            await fill(of.writer, lease, 3)
            await cut_off(server, num_bytes=700)
            server.command("ACL", "SETUSER", "app", "reset", *rules)
            assert await epoch_of(of.stranger) == epoch
            assert await epoch_of(of.writer) != epoch
