"""Gateway replica: the ASGI application over the store, and over the models for callers' files.

No torch, no state. The models belong to the other application: their handles are found by name, and
only when somebody sends a file, so that the edge starts and restarts without them.
"""

from __future__ import annotations

import asyncio
from functools import cache, partial
from typing import Any

from fastapi import FastAPI
from ray import serve

from deployments.config import ENCODER, FUSED, PIPELINE_APP, ROLLOUT
from deployments.meter import RayMeter
from deployments.pipeline import RayPipeline
from deployments.store import open_store
from deployments.upkeep import begin_replica
from streamer import __version__
from streamer.build import installed_commit
from streamer.clock import monotonic_ns
from streamer.gateway.app import build_app
from streamer.gateway.backend import Backend, Build
from streamer.gateway.hub import Hub
from streamer.gateway.uploads import Uploads
from streamer.settings import Settings

__all__ = ["GatewayReplica"]

_POLL_S = 0.05


class GatewayReplica:
    """What `serve.ingress()` wraps.

    The application is built in the replica (late binding): an application object made before would
    have to be pickled, which fails once it has run in the same process.
    """

    def __init__(self, settings: Settings) -> None:
        begin_replica(log_level=settings.log.level)
        self._backend = Backend(
            store=open_store(settings.store),
            policy=settings.sources,
            build=Build(version=__version__, commit=installed_commit(), runtime="ray"),
            feed=settings.feed,
            config=settings.gateway,
            defaults=settings.stream_spec(""),
            uploads=Uploads(
                cache(partial(_models, settings)),
                config=settings.uploads,
                files=settings.files,
                session=settings.session,
            ),
            also=RayMeter(),
        )

    def __serve_build_asgi_app__(self) -> FastAPI:  # the name is Serve's
        self._app = build_app(self._backend)
        return self._app

    async def drain(self, timeout_s: float) -> int:
        """Say goodbye to every socket (1012) and refuse new ones; the number of those left.

        Serve itself has no hook at the start of a drain: whoever stops the service calls this.
        """
        self._backend.draining.set()
        hub: Hub = self._app.state.hub
        end_ns = monotonic_ns() + int(timeout_s * 1e9)
        # The hub counts its subscribers and tells nobody.
        while hub.subscribers and monotonic_ns() < end_ns:  # noqa: ASYNC110 - sockets tell no event
            await asyncio.sleep(_POLL_S)
        return hub.subscribers


def _models(settings: Settings) -> RayPipeline:
    is_fused = settings.ray.placement == "fused"
    encoder, rollout = (FUSED, FUSED) if is_fused else (ENCODER, ROLLOUT)
    return RayPipeline(_handle(encoder), _handle(rollout))


def _handle(deployment: str) -> Any:
    # Whether it is there shows with the first call: the store says so before, see admission.
    return serve.get_deployment_handle(deployment, PIPELINE_APP, _check_exists=False)
