"""The store as replicas reach it: Redis, or the embedded one as a named Ray actor.

The actor is plain `MemoryStore`: its coroutines become the actor's methods. It outlives the replica
that happened to make it (detached) and restarts when it dies, but its content is memory: a restart
is another epoch without streams. Whoever needs more names a Redis.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import ray

from deployments.streams import translated
from streamer.clock import monotonic_ns
from streamer.records import Outcome, StreamRecord, StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.memory import MemoryStore
from streamer.store.open import opened_store
from streamer.store.protocol import Lease, LogSlice, PictureKind, Presence, Store, StoredPicture

__all__ = ["StoreClient", "open_store", "opened_here", "stop_store", "store_actor"]

NAMESPACE = "streamer"
NAME = "store"

# Every gateway keeps one long poll per stream open. They wait inside the actor's only event loop,
# so the limit must never be reached: beyond it appends would queue behind polls. (Separate
# concurrency groups are no way out: each has its own event loop, and the store lives in one.)
_MAX_CALLS = 20_000

# A poller that was cancelled leaves its call in the actor until it returns: keep those short.
_SLICE_S = 5.0


def open_store(config: StoreConfig) -> Store:
    """The cluster's store, for the life of this process."""
    if not config.url:
        return StoreClient(config)
    from streamer.store.redis import RedisStore

    return RedisStore(config)


@asynccontextmanager
async def opened_here(config: StoreConfig) -> AsyncIterator[Store]:
    """The same for a while, in a process that does other things afterwards."""
    if not config.url:
        yield StoreClient(config)
        return
    async with opened_store(config) as store:
        yield store


def store_actor(config: StoreConfig) -> Any:
    """Handle of the store, which is made when it does not exist. Needs a connected Ray.

    The configuration of whoever comes first counts.
    """
    options = ray.remote(MemoryStore).options(
        name=NAME,
        namespace=NAMESPACE,
        get_if_exists=True,
        lifetime="detached",  # replicas come and go, the log stays
        max_restarts=-1,
        max_task_retries=0,  # an append that may have been written must not be repeated
        max_concurrency=_MAX_CALLS,
        num_cpus=0,
    )
    return options.remote(config)


def stop_store() -> None:
    """End the actor for good, if there is one. Only for a cluster that is ours."""
    try:
        actor = ray.get_actor(NAME, namespace=NAMESPACE)
    except ValueError:
        return
    ray.kill(actor, no_restart=True)


class StoreClient:
    """`streamer.store.protocol.Store` over the actor.

    Every method may also raise `CapacityError` while the actor is restarting. Nothing is retried
    here, because an append may have been written although its answer was lost.

    Args:
        config: bounds, should the cluster's store have to be made.
        actor: another actor than the cluster's.
    """

    def __init__(self, config: StoreConfig, *, actor: Any = None) -> None:
        self._config = config
        self._made: Any = actor

    @property
    def _actor(self) -> Any:
        if self._made is None:
            self._made = store_actor(self._config)
        return self._made

    async def _ask(self, call: Awaitable[Any]) -> Any:
        with translated("store"):
            return await call

    async def _poll(
        self,
        call: Callable[[float], Awaitable[Any]],
        *,
        is_news: Callable[[int], bool],
        timeout_s: float,
    ) -> int:
        """Repeat a long poll in short slices until it has news, or the time is over."""
        end_ns = monotonic_ns() + int(timeout_s * 1e9)
        while True:
            left_s = (end_ns - monotonic_ns()) / 1e9
            answer = int(await self._ask(call(max(0.0, min(left_s, _SLICE_S)))))
            if is_news(answer) or left_s <= _SLICE_S:
                return answer

    async def epoch(self) -> str:
        return str(await self._ask(self._actor.epoch.remote()))

    # registry -----------------------------------------------------------------------------------
    async def create_stream(self, stream: str, spec: StreamSpec) -> tuple[StreamRecord, bool]:
        record, is_new = await self._ask(self._actor.create_stream.remote(stream, spec))
        return record, is_new

    async def get_stream(self, stream: str) -> StreamRecord:
        record: StreamRecord = await self._ask(self._actor.get_stream.remote(stream))
        return record

    async def list_streams(self, *, after: str = "", limit: int = 1000) -> list[StreamRecord]:
        return list(await self._ask(self._actor.list_streams.remote(after=after, limit=limit)))

    async def change_stream(
        self, stream: str, spec: StreamSpec, *, if_revision: int | None = None
    ) -> StreamRecord:
        call = self._actor.change_stream.remote(stream, spec, if_revision=if_revision)
        record: StreamRecord = await self._ask(call)
        return record

    async def set_desired(self, stream: str, desired: Literal["live", "paused"]) -> StreamRecord:
        record: StreamRecord = await self._ask(self._actor.set_desired.remote(stream, desired))
        return record

    async def finish_stream(
        self, stream: str, *, lease: str, outcome: Outcome, if_revision: int | None = None
    ) -> None:
        call = self._actor.finish_stream.remote(
            stream, lease=lease, outcome=outcome, if_revision=if_revision
        )
        await self._ask(call)

    async def delete_stream(self, stream: str) -> None:
        await self._ask(self._actor.delete_stream.remote(stream))

    async def wait_registry(self, *, seen: int, timeout_s: float) -> int:
        return await self._poll(
            lambda slice_s: self._actor.wait_registry.remote(seen=seen, timeout_s=slice_s),
            is_news=lambda counter: counter != seen,
            timeout_s=timeout_s,
        )

    # leases -------------------------------------------------------------------------------------
    async def acquire_lease(self, stream: str, *, owner: str, ttl_s: float) -> Lease:
        call = self._actor.acquire_lease.remote(stream, owner=owner, ttl_s=ttl_s)
        lease: Lease = await self._ask(call)
        return lease

    async def renew_lease(self, lease: Lease, *, ttl_s: float) -> None:
        await self._ask(self._actor.renew_lease.remote(lease, ttl_s=ttl_s))

    async def release_lease(self, lease: Lease) -> None:
        await self._ask(self._actor.release_lease.remote(lease))

    async def lease_holders(self) -> dict[str, str]:
        return dict(await self._ask(self._actor.lease_holders.remote()))

    # status and presence ------------------------------------------------------------------------
    async def put_status(
        self, stream: str, status: dict[str, Any], *, lease: str, ttl_s: float
    ) -> None:
        await self._ask(self._actor.put_status.remote(stream, status, lease=lease, ttl_s=ttl_s))

    async def get_status(self, stream: str) -> dict[str, Any] | None:
        status: dict[str, Any] | None = await self._ask(self._actor.get_status.remote(stream))
        return status

    async def announce(self, presence: Presence, *, ttl_s: float) -> None:
        await self._ask(self._actor.announce.remote(presence, ttl_s=ttl_s))

    async def present(self, kind: str) -> list[Presence]:
        return list(await self._ask(self._actor.present.remote(kind)))

    # pictures -----------------------------------------------------------------------------------
    async def put_picture(
        self, stream: str, *, lease: str, kind: PictureKind, picture: StoredPicture, ttl_s: float
    ) -> None:
        await self._ask(
            self._actor.put_picture.remote(
                stream, lease=lease, kind=kind, picture=picture, ttl_s=ttl_s
            )
        )

    async def get_picture(
        self, stream: str, kind: PictureKind, *, at_ns: int | None = None
    ) -> StoredPicture:
        call = self._actor.get_picture.remote(stream, kind, at_ns=at_ns)
        picture: StoredPicture = await self._ask(call)
        return picture

    # event log ----------------------------------------------------------------------------------
    async def append(self, stream: str, *, lease: str, body: bytes) -> int:
        return int(await self._ask(self._actor.append.remote(stream, lease=lease, body=body)))

    async def read(self, stream: str, *, after_seq: int, limit: int = 256) -> LogSlice:
        call = self._actor.read.remote(stream, after_seq=after_seq, limit=limit)
        entries: LogSlice = await self._ask(call)
        return entries

    async def wait(self, stream: str, *, after_seq: int, timeout_s: float) -> int:
        return await self._poll(
            lambda slice_s: self._actor.wait.remote(stream, after_seq=after_seq, timeout_s=slice_s),
            is_news=lambda head: head > after_seq,
            timeout_s=timeout_s,
        )
