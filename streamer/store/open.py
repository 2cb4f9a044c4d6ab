"""The store that the settings name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from streamer.store.config import StoreConfig
from streamer.store.memory import MemoryStore
from streamer.store.protocol import Store

__all__ = ["check_store", "open_store", "opened_store"]


def open_store(config: StoreConfig) -> Store:
    """A store of this process, without any I/O yet.

    With a `url` each process of the service opens its own and they share what is in it; without
    one it is the only store there is.
    """
    if not config.url:
        return MemoryStore(config)
    # Only here, because whoever keeps its store in memory need not load the client.
    from streamer.store.redis import RedisStore

    return RedisStore(config)


@asynccontextmanager
async def opened_store(config: StoreConfig) -> AsyncIterator[Store]:
    """The store, checked at the begin and closed at the end.

    Raises:
        CapacityError: it does not answer within `config.start_s`.
        ConfigError: it cannot serve as it is; the sentence says how to change that.
    """
    if not config.url:
        yield MemoryStore(config)
        return
    from streamer.store.redis import RedisStore
    from streamer.store.redis_check import check_redis

    store = RedisStore(config)
    try:
        await check_redis(store, config=config)
        yield store
    finally:
        await store.close()


async def check_store(config: StoreConfig) -> None:
    """Raises as `opened_store`; for whoever starts processes that open their own store."""
    async with opened_store(config):
        pass
