"""Every implementation of the store, each with a way to let time pass.

A new implementation joins by one more entry in `KITS`; the suite knows nothing else of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace

import pytest
from redis_server import RedisServer, running_redis

from streamer.store.config import StoreConfig
from streamer.store.memory import MemoryStore
from streamer.store.protocol import Store
from streamer.store.redis import RedisStore


@dataclass(frozen=True, kw_only=True)
class Kit:
    """One implementation under test."""

    open: Callable[[StoreConfig], Awaitable[Store]]
    """A new store that has lost everything before it."""
    elapse: Callable[[float], Awaitable[None]]
    """Let so many seconds pass for TTLs and ages."""


@asynccontextmanager
async def memory_kit(request: pytest.FixtureRequest) -> AsyncIterator[Kit]:
    now_ns = 1_000_000_000_000

    async def open_store(config: StoreConfig) -> Store:
        return MemoryStore(config, monotonic=lambda: now_ns)

    async def elapse(seconds: float) -> None:
        nonlocal now_ns
        now_ns += int(seconds * 1e9)

    yield Kit(open=open_store, elapse=elapse)


@asynccontextmanager
async def redis_kit(request: pytest.FixtureRequest) -> AsyncIterator[Kit]:
    server: RedisServer = request.getfixturevalue("redis_server")
    opened: list[RedisStore] = []

    async def open_store(config: StoreConfig) -> Store:
        server.command("FLUSHALL")
        opened.append(RedisStore(replace(config, url=server.socket_url)))
        return opened[-1]

    try:
        yield Kit(open=open_store, elapse=asyncio.sleep)  # its time cannot be set
    finally:
        for store in opened:
            await store.close()


KITS: dict[str, Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[Kit]]] = {
    "memory": memory_kit,
    "redis": redis_kit,
}


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server


@pytest.fixture(params=sorted(KITS))
async def kit(request: pytest.FixtureRequest) -> AsyncIterator[Kit]:
    async with KITS[request.param](request) as kit:
        yield kit


@pytest.fixture
async def store(kit: Kit) -> Store:
    return await kit.open(StoreConfig())
