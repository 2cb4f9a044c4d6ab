"""One process's connections to one Redis, and how scripts are called on them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from streamer.store.config import StoreConfig
from streamer.store.redis_address import shown_address
from streamer.store.redis_errors import translated
from streamer.store.redis_scripts import SCRIPTS

__all__ = ["RedisConnection"]


class RedisConnection:
    """Connects when first used, and again when a connection broke.

    Nothing is tried twice here, because a script may have run although its answer was lost.

    Args:
        config: where, and for how long to wait.
    """

    def __init__(self, config: StoreConfig) -> None:
        self.place = shown_address(config.url)
        """The server as it may be shown."""
        self.timeout_s = config.timeout_s
        self.client = _client(config)
        self._scripts = {name: self.client.register_script(lua) for name, lua in SCRIPTS.items()}

    async def run(
        self, script: str, *, keys: Sequence[str], args: Sequence[str | bytes | int] = ()
    ) -> list[Any]:
        """Run one of `SCRIPTS`. Safe to cancel; it may have run nevertheless.

        Raises: as `translated`.
        """
        with translated(self.place):
            async with asyncio.timeout(self.timeout_s):
                answer: list[Any] = await self._scripts[script](keys=keys, args=args)
        return answer

    async def get(self, key: str) -> bytes | None:
        """One value. Safe to cancel.

        Raises: as `translated`.
        """
        with translated(self.place):
            async with asyncio.timeout(self.timeout_s):
                value = await self.client.get(key)
        return cast("bytes | None", value)

    async def info(self) -> dict[str, Any]:
        """What the server says of itself. Safe to cancel.

        Raises: as `translated`.
        """
        with translated(self.place):
            async with asyncio.timeout(self.timeout_s):
                facts: dict[str, Any] = await self.client.info()
        return facts

    def listener(self) -> PubSub:
        """For messages on channels; it stays lost once it was lost."""
        return _Listener(self.client.connection_pool)

    async def close(self) -> None:
        """Idempotent."""
        await self.client.aclose()
        await self.client.connection_pool.aclose()


class _Listener(PubSub):
    async def _reconnect(self, conn: Any, *_: object, **__: object) -> None:
        # redis-py connects again inside whichever call noticed the loss. We read and subscribe at
        # once: both would, over each other, and one socket would never be closed.
        await conn.disconnect(nowait=True)


def _client(config: StoreConfig) -> Redis:
    pool = BlockingConnectionPool.from_url(
        config.url,
        password=config.password or None,
        max_connections=config.max_connections + 1,
        timeout=config.timeout_s,
        # Whoever calls sets a limit. That of redis-py is `asyncio.wait_for` around sending, which
        # loses a cancellation in Python 3.11.
        socket_timeout=None,
        socket_connect_timeout=config.timeout_s,
        retry=Retry(NoBackoff(), 0),  # redis-py would repeat appends
        protocol=2,
    )
    return Redis(connection_pool=pool)
