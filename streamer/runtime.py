"""The local shell: the whole service in one process and one event loop.

Store, models, sessions, supervisor and gateway are the same parts that run on a cluster; here they
share memory. The gateway answers at once and says that it is not ready until the model is warm.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from streamer import __version__
from streamer.build import installed_commit
from streamer.errors import CapacityError
from streamer.gateway.auth import check_exposure
from streamer.gateway.backend import Backend, Build
from streamer.gateway.server import base_url, bound_socket, opened_gateway
from streamer.gateway.uploads import Uploads
from streamer.loading import opened_pipeline
from streamer.outage import Outage
from streamer.serving.local import LocalPipeline
from streamer.serving.stage_times import StageTimes
from streamer.sessions.ending import Ending
from streamer.sessions.served import LateServed
from streamer.sessions.session import Session
from streamer.sessions.supervisor import Supervisor
from streamer.settings import Settings
from streamer.sources.open import open_source
from streamer.store.open import opened_store
from streamer.store.protocol import Presence, Store
from streamer.telemetry import BothMeters, Meter

__all__ = ["LocalHost", "Ready", "serve_local"]

_LOG = logging.getLogger(__name__)

Ready = Callable[[Store, str], Coroutine[Any, Any, None]]
"""Called with store and base URL once everything is ready, and again if the store was out of reach;
runs beside the service and is cancelled when that ends."""


class LocalHost:
    """`streamer.sessions.supervisor.SessionHost`: sessions are coroutines of this process."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store,
        pipeline: LocalPipeline,
        owner: str,
        meter: Meter | None = None,
    ) -> None:
        self._settings = settings
        self._meter = meter
        self._store = store
        self._pipeline = pipeline
        self._owner = owner

    async def run(self, stream: str) -> Ending:
        """As `SessionHost.run`."""
        settings = self._settings
        session = Session(
            await self._store.get_stream(stream),
            store=self._store,
            pipeline=self._pipeline,
            model=self._pipeline.info,
            open_source=partial(
                open_source, policy=settings.sources, config=settings.source_config()
            ),
            owner=self._owner,
            config=settings.session,
            meter=self._meter,
        )
        return await session.run()


async def serve_local(settings: Settings, *, stop: asyncio.Event, on_ready: Ready) -> None:
    """Serve until `stop` is set, then drain: sessions end, feeds are told, the server stops.

    Cancellation stops at once: open feeds are cut.

    Raises:
        ConfigError: the port is taken, a setting cannot work, or strangers could call.
        CapacityError: the store does not answer.
        NotFound, ModelError: the model cannot be loaded.
    """
    check_exposure(
        settings.server.host,
        has_tokens=bool(settings.gateway.tokens_file),
        allow_anonymous=settings.server.allow_anonymous,
    )
    served = LateServed()
    drain_s = settings.server.drain_s
    with bound_socket(settings.server.host, settings.server.port) as listening:
        async with opened_store(settings.store) as store:
            backend = _backend(settings, store, served=served)
            async with opened_gateway(backend, listening=listening, drain_s=drain_s):
                work = _run(
                    settings,
                    store,
                    served=served,
                    url=base_url(listening),
                    on_ready=on_ready,
                    meter=backend.metrics,
                )
                await _until(stop, work, draining=backend.draining)


def _backend(settings: Settings, store: Store, *, served: LateServed) -> Backend:
    return Backend(
        store=store,
        policy=settings.sources,
        build=Build(version=__version__, commit=installed_commit(), runtime="local"),
        feed=settings.feed,
        config=settings.gateway,
        defaults=settings.stream_spec(""),
        uploads=Uploads(
            served, config=settings.uploads, files=settings.files, session=settings.session
        ),
    )


async def _run(
    settings: Settings,
    store: Store,
    *,
    served: LateServed,
    url: str,
    on_ready: Ready,
    meter: Meter,
) -> None:
    """Models, sessions and supervisor, for ever."""
    owner = f"local-{os.getpid()}"
    times = StageTimes()
    both = BothMeters(meter, times)
    async with opened_pipeline(settings, store=store, meter=both) as pipeline:
        served.give(pipeline)
        host = LocalHost(settings, store=store, pipeline=pipeline, owner=owner, meter=meter)
        supervisor = Supervisor(store, host=host, owner=owner, config=settings.supervisor)
        presences = [
            Presence(kind="ingest", replica=owner),
            Presence(kind="encoder", replica=owner, model=pipeline.info),
            Presence(kind="rollout", replica=owner, model=pipeline.info),
        ]
        async with asyncio.TaskGroup() as group:
            group.create_task(_keep_announcing(store, presences, settings=settings, times=times))
            group.create_task(supervisor.run())
            group.create_task(_tell(on_ready, store, url, again_s=settings.supervisor.poll_s))


async def _tell(on_ready: Ready, store: Store, url: str, *, again_s: float) -> None:
    outage = Outage(_LOG, lost="readiness not told", back="readiness told")
    while True:
        try:
            await on_ready(store, url)
            outage.went_well()
            return
        except CapacityError as error:  # of the store: no reason to end what runs
            outage.failed(error.message)
        await asyncio.sleep(again_s)


async def _keep_announcing(
    store: Store, presences: list[Presence], *, settings: Settings, times: StageTimes
) -> None:
    outage = Outage(_LOG, lost="not announced", back="announced again")
    while True:
        try:
            for presence in presences:
                told = replace(presence, stages=times.now()) if presence.model else presence
                await store.announce(told, ttl_s=settings.supervisor.presence_ttl_s)
        except CapacityError as error:
            outage.failed(error.message)
        else:
            outage.went_well()
        await asyncio.sleep(settings.supervisor.poll_s)


async def _until(
    stop: asyncio.Event, work: Coroutine[Any, Any, None], *, draining: asyncio.Event
) -> None:
    """Run `work` until it fails or `stop` is set; then tell the feeds, cancel it, await its end."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        draining.set()
        working.cancel()
        stopping.cancel()
        await asyncio.wait({working, stopping})
