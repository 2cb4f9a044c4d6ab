"""Ingest replica: each ongoing request runs one stream. No torch in here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from deployments.meter import RayMeter
from deployments.pipeline import RayPipeline
from deployments.store import open_store
from deployments.upkeep import Upkeep, begin_replica, keep_announcing, replica_name
from streamer.sessions.ending import Ending
from streamer.sessions.session import Session
from streamer.settings import Settings
from streamer.sources.open import open_source
from streamer.store.protocol import Lease, Presence

__all__ = ["HEARTBEAT_S", "IngestReplica", "Sign"]

HEARTBEAT_S = 1.0
_OPENING_S = 0.05

Sign = Lease | Ending | None
"""Of life: the session's lease once it has one. The last is how it ended."""


class IngestReplica:
    """Thin skin around `Session`.

    Args:
        encoder, rollout: handles, see `RayPipeline`.
    """

    async def __init__(self, settings: Settings, encoder: Any, rollout: Any) -> None:  # type: ignore[misc]  # Serve awaits it
        begin_replica(log_level=settings.log.level)
        self._settings = settings
        self._store = open_store(settings.store)
        self._pipeline = RayPipeline(encoder, rollout)
        self._meter = RayMeter()
        self._name = replica_name()
        self._upkeep = Upkeep()
        presence = Presence(kind="ingest", replica=self._name)
        self._upkeep.start(keep_announcing(self._store, presence))
        self._sessions: set[asyncio.Task[Ending]] = set()

    async def run(self, stream: str) -> AsyncIterator[Sign]:
        """Run one session: signs of life, one a second, at last its `Ending`.

        Cancellation ends the session: decode thread stopped, lease released.

        Raises: as `Session.run`; `NotFound` for an unknown stream, `CapacityError` without models.
        """
        session = await self._session(stream)
        task = asyncio.create_task(session.run())
        self._sessions.add(task)
        try:
            while not task.done():
                lease = session.lease
                yield lease
                # Soon, because whoever knows the lease of a dead process need not wait for its end.
                await asyncio.wait({task}, timeout=HEARTBEAT_S if lease else _OPENING_S)
            yield task.result()
        finally:
            _cancel(task)
            await asyncio.wait({task})
            self._sessions.discard(task)

    async def drain(self) -> None:
        """End the sessions that are left: those of a supervisor that died and could end none."""
        sessions = set(self._sessions)
        for session in sessions:
            _cancel(session)
        if sessions:
            await asyncio.wait(sessions)

    async def check_health(self) -> None:
        self._upkeep.check()

    async def _session(self, stream: str) -> Session:
        return Session(
            await self._store.get_stream(stream),
            store=self._store,
            pipeline=self._pipeline,
            model=await self._pipeline.describe(),
            open_source=partial(
                open_source, policy=self._settings.sources, config=self._settings.source_config()
            ),
            owner=self._name,
            config=self._settings.session,
            meter=self._meter,
        )


def _cancel(session: asyncio.Task[Ending]) -> None:
    """Once: a second time would cut short what it does to end in order."""
    if not session.cancelling():
        session.cancel()
