"""A writer and a reader go through outages of a real Redis; nothing is given twice or left out."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from redis_server import RedisServer, running_redis

from streamer.errors import CapacityError, Conflict, LeaseLost, NotFound
from streamer.records import StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.protocol import Lease, LogSlice
from streamer.store.redis import RedisStore

pytestmark = pytest.mark.e2e

STREAM = "kitchen"
SPEC = StreamSpec(source="synthetic:bounce?seed=1")
LEASE_S = 1.0
LOST_S = 2.0
NAP_S = 0.01
SOON_S = 20.0


@asynccontextmanager
async def opened(server: RedisServer) -> AsyncIterator[RedisStore]:
    store = RedisStore(StoreConfig(url=server.url))
    try:
        yield store
    finally:
        await store.close()


@dataclass
class Writer:
    """Appends numbered events as fast as naps allow, like a session that never gives up."""

    store: RedisStore
    written: list[tuple[int, int]] = field(default_factory=list)
    """(seq, number) of each answered append."""
    leases: list[Lease] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    progress: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def run(self) -> None:
        number = 0
        while True:
            number += 1
            try:
                if not self.leases:
                    await self._acquire()
                body = json.dumps({"n": number}).encode()
                seq = await self.store.append(STREAM, lease=self.leases[-1].token, body=body)
                async with self.progress:
                    self.written.append((seq, number))
                    self.progress.notify_all()
                await self.store.renew_lease(self.leases[-1], ttl_s=LEASE_S)
            except CapacityError as error:
                self.refusals.append(error.message)
            except LeaseLost:
                await self._acquire_again()
            await asyncio.sleep(NAP_S)

    async def _acquire(self) -> None:
        await self.store.create_stream(STREAM, SPEC)
        self.leases.append(await self.store.acquire_lease(STREAM, owner="writer", ttl_s=LEASE_S))

    async def _acquire_again(self) -> None:
        try:
            await self._acquire()
        except (CapacityError, Conflict) as error:
            self.refusals.append(error.message)

    async def more(self, count: int = 20) -> None:
        """Wait for so many further appends."""
        async with asyncio.timeout(SOON_S), self.progress:
            goal = len(self.written) + count
            await self.progress.wait_for(lambda: len(self.written) >= goal)


@dataclass
class Reader:
    """Follows the log as a gateway does."""

    store: RedisStore
    found: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """Epoch -> (seq, number) as read."""
    progress: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def run(self) -> None:
        epoch, last = "", 0
        while True:
            try:
                await self.store.wait(STREAM, after_seq=last, timeout_s=0.5)
                log = await self.store.read(STREAM, after_seq=last)
                if log.epoch != epoch:
                    epoch, last = log.epoch, 0
                    log = await self.store.read(STREAM, after_seq=0)
                await self._take(log)
                last = log.entries[-1].seq if log.entries else last
            except (CapacityError, NotFound):
                await asyncio.sleep(NAP_S)

    async def _take(self, log: LogSlice) -> None:
        async with self.progress:
            for entry in log.entries:
                self.found[log.epoch].append((entry.seq, json.loads(entry.body)["n"]))
            self.progress.notify_all()

    async def catches_up(self, writer: Writer) -> None:
        """Wait until the newest answered append was read."""
        goal = writer.written[-1]
        async with asyncio.timeout(SOON_S), self.progress:
            await self.progress.wait_for(lambda: goal in list(self.found.values())[-1])


async def restarted(server: RedisServer) -> None:
    """Killed, away for longer than a lease, back with its data."""
    await asyncio.to_thread(server.stop)
    await asyncio.sleep(LOST_S)
    await asyncio.to_thread(server.start)


async def emptied(server: RedisServer) -> None:
    await asyncio.to_thread(server.stop)
    server.forget()
    await asyncio.to_thread(server.start)


async def frozen(server: RedisServer) -> None:
    server.freeze()
    await asyncio.sleep(LOST_S)
    server.resume()


async def starved(server: RedisServer) -> None:
    await asyncio.to_thread(server.command, "CONFIG", "SET", "maxmemory", "1")
    await asyncio.sleep(LOST_S / 4)
    await asyncio.to_thread(server.command, "CONFIG", "SET", "maxmemory", "0")


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("outage", "sentence", "epochs"),
    [
        (restarted, "out of reach", 1),
        (emptied, "", 2),
        (frozen, "out of reach", 1),
        (starved, "maxmemory", 1),
    ],
)
async def test_no_number_is_left_out_or_given_twice(
    outage: Callable[[RedisServer], Awaitable[None]], sentence: str, epochs: int
) -> None:
    with running_redis() as server:
        async with opened(server) as ours, opened(server) as theirs, opened(server) as third:
            writer, reader = Writer(ours), Reader(theirs)
            writing = asyncio.create_task(writer.run())
            reading = asyncio.create_task(reader.run())
            await writer.more()
            first = writer.leases[0]
            await outage(server)
            await writer.more()
            if len(writer.leases) > 1:
                with pytest.raises(LeaseLost):  # the zombie
                    await third.append(STREAM, lease=first.token, body=b"{}")
            await cancelled(writing)
            await reader.catches_up(writer)
            await cancelled(reading)
    assert len(reader.found) == epochs
    for found in reader.found.values():
        assert [seq for seq, _ in found] == list(range(1, len(found) + 1))
        numbers = [number for _, number in found]
        assert numbers == sorted(set(numbers))
    assert any(sentence in each for each in writer.refusals) or not sentence
    if epochs == 1:  # what was answered is there; what was not may be
        assert set(writer.written) <= set(*reader.found.values())


async def test_a_restart_between_two_calls_goes_unnoticed() -> None:
    """Connections that died while nobody used them are replaced before the next call."""
    with running_redis() as server:
        async with opened(server) as store:
            await store.create_stream(STREAM, SPEC)
            lease = await store.acquire_lease(STREAM, owner="me", ttl_s=60)
            await store.append(STREAM, lease=lease.token, body=b"{}")
            epoch = await store.epoch()
            await asyncio.to_thread(server.restart)
            assert await store.append(STREAM, lease=lease.token, body=b"{}") == 2
            assert await store.epoch() == epoch
            assert (await store.read(STREAM, after_seq=0)).first_seq == 1
