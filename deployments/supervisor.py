"""Supervisor replica: holds one long-lived streaming call per live stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from ray.exceptions import ActorDiedError

from deployments.ingest import HEARTBEAT_S, Sign
from deployments.store import open_store
from deployments.streams import cancelling, translated
from deployments.upkeep import Upkeep, begin_replica, replica_name
from streamer.errors import CapacityError, DeadlineExceeded, WorkerDied
from streamer.sessions.config import SupervisorConfig
from streamer.sessions.ending import Ending
from streamer.sessions.lease import store_may_be_away
from streamer.sessions.supervisor import Supervisor
from streamer.settings import Settings
from streamer.store.protocol import Lease, Store

__all__ = ["RaySessionHost", "SupervisorReplica"]

# The first heartbeat waits for a place, perhaps for a new replica; afterwards silence means that
# the replica hangs, and by then the lease has run out.
_FIRST_S = 60.0
_SILENCE_S = 10 * HEARTBEAT_S


class RaySessionHost:
    """`streamer.sessions.supervisor.SessionHost` over a handle on the ingest deployment."""

    def __init__(
        self,
        ingest: Any,
        *,
        store: Store,
        first_s: float = _FIRST_S,
        silence_s: float = _SILENCE_S,
    ) -> None:
        self._ingest = ingest.options(stream=True)
        self._store = store
        self._first_s = first_s
        self._silence_s = silence_s

    async def run(self, stream: str) -> Ending:
        """As `SessionHost.run`.

        Raises:
            WorkerDied: the replica died, with all sessions in it.
            CapacityError: no replica; `DeadlineExceeded` when it fell silent.
        """
        last: Sign = None
        try:
            async with aclosing(self._signs(stream)) as signs:
                async for sign in signs:
                    last = sign
        except CapacityError as error:
            if not isinstance(error.__cause__, ActorDiedError):
                raise
            # Without this, the stream would wait until the dead session's lease runs out. Should
            # Ray be wrong about the death, the store refuses what that session still appends.
            if isinstance(last, Lease):
                with store_may_be_away():  # then it runs out by itself; a death stays a death
                    await self._store.release_lease(last)
            raise WorkerDied(
                f"The ingest replica of stream {stream!r} died; the stream is opened again.",
                error.retry_after_s,
            ) from error
        if not isinstance(last, Ending):
            raise CapacityError(f"The session of stream {stream!r} stopped without saying why.")
        return last

    async def _signs(self, stream: str) -> AsyncGenerator[Sign, None]:
        patience_s = self._first_s
        with translated("ingest"):
            async with cancelling(self._ingest.run.remote(stream)) as signs:
                while True:
                    try:
                        async with asyncio.timeout(patience_s):
                            sign = await anext(signs)
                    except StopAsyncIteration:
                        return
                    except TimeoutError as error:
                        raise DeadlineExceeded(
                            f"The ingest replica of stream {stream!r} has been silent for"
                            f" {patience_s:g} s; the stream is opened again."
                        ) from error
                    yield sign
                    patience_s = self._silence_s


def _within_places(settings: Settings) -> SupervisorConfig:
    """No more sessions than all ingest replicas have places: one more would only wait in the
    handle, where nobody sees it."""
    layout, config = settings.ray, settings.supervisor
    places = layout.ingest_replicas * layout.streams_per_replica
    return replace(config, max_sessions=min(config.max_sessions, places))


class SupervisorReplica:
    """Runs the reconcile loop; Serve replaces the replica when the loop ends."""

    async def __init__(self, settings: Settings, ingest: Any) -> None:  # type: ignore[misc]  # Serve awaits it
        begin_replica(log_level=settings.log.level)
        store = open_store(settings.store)
        self._supervisor = Supervisor(
            store,
            host=RaySessionHost(ingest, store=store),
            owner=replica_name(),
            config=_within_places(settings),
        )
        self._upkeep = Upkeep()
        self._upkeep.start(self._supervisor.run())

    async def running(self) -> list[str]:
        """Streams whose session is open from here."""
        return sorted(self._supervisor.running)

    async def drain(self) -> None:
        """End every session and open no more: leases are given back at once, so that another
        service on the same store goes on, and no ingest replica is killed in its work.
        """
        await self._upkeep.stop()

    async def check_health(self) -> None:
        self._upkeep.check()
