"""A writer and a reader go through outages of a real Redis; nothing is given twice or left out."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from redis_server import RedisServer, certificate, free_port, running_redis

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
async def opened(config: StoreConfig) -> AsyncIterator[RedisStore]:
    store = RedisStore(config)
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


async def slowed(server: RedisServer) -> None:
    """Each answer takes up to a fifth of a second: nothing to take for an outage."""
    end = asyncio.get_running_loop().time() + LOST_S
    while asyncio.get_running_loop().time() < end:
        await asyncio.to_thread(server.command, "CLIENT", "PAUSE", "200", "ALL")


@contextmanager
def plain() -> Iterator[tuple[RedisServer, StoreConfig]]:
    with running_redis() as server:
        yield server, StoreConfig(url=server.url)


@contextmanager
def guarded() -> Iterator[tuple[RedisServer, StoreConfig]]:
    """TLS and a password."""
    port = str(free_port())
    with tempfile.TemporaryDirectory() as folder:
        options = {"requirepass": "secret", "tls-port": port, **certificate(Path(folder))}
        with running_redis(**options) as server:
            url = f"rediss://localhost:{port}/0?ssl_ca_certs={folder}/cert.pem"
            yield server, StoreConfig(url=url, password="secret")


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("outage", "place", "sentence", "epochs"),
    [
        (restarted, plain, "out of reach", 1),
        (restarted, guarded, "out of reach", 1),
        (emptied, plain, "", 2),
        (frozen, plain, "out of reach", 1),
        (frozen, guarded, "out of reach", 1),
        (starved, plain, "maxmemory", 1),
        (slowed, plain, None, 1),
        (slowed, guarded, None, 1),
    ],
)
async def test_no_number_is_left_out_or_given_twice(
    outage: Callable[[RedisServer], Awaitable[None]],
    place: Callable[[], AbstractContextManager[tuple[RedisServer, StoreConfig]]],
    sentence: str | None,
    epochs: int,
) -> None:
    """`sentence` is in what the writer was refused with; None: it was refused nothing."""
    with place() as (server, config):
        async with opened(config) as ours, opened(config) as theirs, opened(config) as third:
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
    if sentence is None:
        assert writer.refusals == []
    else:
        assert any(sentence in each for each in writer.refusals) or not sentence
    if epochs == 1:  # what was answered is there; what was not may be
        assert set(writer.written) <= set(*reader.found.values())


async def test_a_restart_between_two_calls_goes_unnoticed() -> None:
    """Connections that died while nobody used them are replaced before the next call."""
    with plain() as (server, config):
        async with opened(config) as store:
            await store.create_stream(STREAM, SPEC)
            lease = await store.acquire_lease(STREAM, owner="me", ttl_s=60)
            await store.append(STREAM, lease=lease.token, body=b"{}")
            epoch = await store.epoch()
            await asyncio.to_thread(server.restart)
            assert await store.append(STREAM, lease=lease.token, body=b"{}") == 2
            assert await store.epoch() == epoch
            assert (await store.read(STREAM, after_seq=0)).first_seq == 1


async def test_news_that_break_off_leave_no_socket_open() -> None:
    """Found as a warning of the garbage collector: two tasks had connected again at once."""
    rng = random.Random(1)
    with plain() as (server, config):
        for _ in range(30):
            async with opened(config) as store:
                await store.create_stream(STREAM, SPEC)
                waiting = asyncio.create_task(store.wait(STREAM, after_seq=1, timeout_s=SOON_S))
                await asyncio.sleep(rng.uniform(0, 0.02))
                server.command("CLIENT", "KILL", "TYPE", "pubsub")
                await asyncio.sleep(rng.uniform(0, 0.1))
                waiting.cancel()
                await asyncio.wait([waiting])
        gc.collect()
