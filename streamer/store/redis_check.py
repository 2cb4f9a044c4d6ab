"""Is this Redis fit to be the store? Asked once, at start; every answer says what to do."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

from redis.exceptions import NoPermissionError

from streamer.backoff import Backoff, delays
from streamer.clock import monotonic_ns
from streamer.errors import CapacityError, ConfigError
from streamer.store.config import StoreConfig
from streamer.store.redis import RedisStore
from streamer.store.redis_errors import StoreRefused, translated

__all__ = ["check_redis"]

_LOG = logging.getLogger(__name__)
_OLDEST = (6, 2)
_RETRY = Backoff(first_s=0.2, cap_s=2.0, jitter=0.5)


async def check_redis(store: RedisStore, *, config: StoreConfig) -> None:
    """Wait for the server up to `config.start_s`, then check it. Safe to cancel.

    Raises:
        CapacityError: it does not answer, or refuses for now.
        ConfigError: it cannot be the store as it is; the sentence says how to change that.
    """
    end_ns = monotonic_ns() + int(config.start_s * 1e9)
    for delay_s in delays(_RETRY):
        try:
            await _check_once(store, config=config)
        except StoreRefused as error:
            raise ConfigError(error.message) from error
        except CapacityError as error:
            if monotonic_ns() + delay_s * 1e9 > end_ns:
                raise
            _LOG.warning("waiting for the store", extra={"error": error.message})
            await asyncio.sleep(delay_s)
        else:
            return


async def _check_once(store: RedisStore, *, config: StoreConfig) -> None:
    place = store.connection.place
    try:
        facts = await store.connection.info()
    except StoreRefused as error:
        if not isinstance(error.__cause__, NoPermissionError):
            raise
        _LOG.warning(
            "the store does not let us see its settings; it must have maxmemory-policy noeviction"
            " and appendonly yes",
            extra={"place": place},
        )
    else:
        _judge(facts, place=place, config=config)
    await store.epoch()
    await _check_channel(store, channel=f"{config.prefix}:changes")


def _judge(facts: dict[str, Any], *, place: str, config: StoreConfig) -> None:
    version = str(facts.get("redis_version", ""))
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < _OLDEST:
        raise ConfigError(f"The store at {place} is Redis {version}; it must be 6.2 or later.")
    if facts.get("redis_mode") == "cluster":
        raise ConfigError(
            f"The store at {place} is a cluster; use one Redis or Valkey without cluster mode."
        )
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise ConfigError(
            f"The store at {place} throws data away when its memory is full (maxmemory-policy is"
            f" {policy}). Run CONFIG SET maxmemory-policy noeviction there, and write it into its"
            " configuration."
        )
    if config.require_aof and not facts.get("aof_enabled", 1):
        raise ConfigError(
            f"The store at {place} forgets everything with its process (appendonly is no). Run"
            " CONFIG SET appendonly yes there and write it into its configuration, or set"
            " store.require_aof to false if it keeps data in another way or may lose it."
        )


async def _check_channel(store: RedisStore, *, channel: str) -> None:
    """May this user listen? Users made with ACL rules must be given channels, too."""
    with translated(store.connection.place):
        async with store.connection.listener() as pubsub:
            async with asyncio.timeout(2 * store.connection.timeout_s):
                await pubsub.subscribe(channel)
                await pubsub.get_message(timeout=store.connection.timeout_s)
