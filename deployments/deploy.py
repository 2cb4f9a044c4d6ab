"""What a running cluster is told from outside: deploy, add the demo, drain.

Import only after `deployments.environment.prepare`.
"""

from __future__ import annotations

import asyncio
import logging
import threading

from ray import serve
from ray.serve import RunTarget
from ray.serve.exceptions import RayServeException
from ray.serve.schema import LoggingConfig

from deployments.app import edge, pipeline
from deployments.config import EDGE_APP, PIPELINE_APP
from deployments.store import StoreClient, store_actor
from streamer.errors import ConfigError
from streamer.settings import Settings

__all__ = ["add_demo", "deploy", "drain"]

_LOG = logging.getLogger("streamer.deployments.deploy")
_DRAIN_CALL_S = 5.0


def deploy(settings: Settings) -> None:
    """Both applications side by side; returns when every replica is warm.

    Raises:
        ConfigError: a replica cannot be made, with what it said.
    """
    # Made here, so that replicas find one, and made with these bounds.
    store_actor(settings.store)
    log = LoggingConfig(log_level=settings.log.level.upper(), enable_access_log=False)
    targets = [
        RunTarget(pipeline(settings), name=PIPELINE_APP, route_prefix=None, logging_config=log),
        RunTarget(edge(settings), name=EDGE_APP, route_prefix="/", logging_config=log),
    ]
    try:
        serve.run_many(targets)
    except (RuntimeError, RayServeException) as error:
        raise ConfigError(f"The service cannot start. {_what_failed() or error}") from error


def _what_failed() -> str:
    """What the replicas said, without the frames of Serve around it."""
    told = []
    for name, application in serve.status().applications.items():
        for deployment, status in application.deployments.items():
            if status.message and "fail" in status.status.lower():
                last = [line for line in status.message.strip().splitlines() if line.strip()]
                told.append(f"{name}/{deployment}: {last[-1].strip()}")
    return "; ".join(told)


def add_demo(settings: Settings, *, stream: str, source: str) -> None:
    """Register the demo stream, unless it is there."""
    store = StoreClient(settings.store)

    async def register() -> None:
        await store.create_stream(stream, settings.stream_spec(source))

    asyncio.run(register())


def drain(settings: Settings) -> None:
    """Let every gateway say goodbye to its sockets, and give them `server.drain_s` for it."""
    try:
        gateways = serve.get_app_handle(EDGE_APP)
        gateways.broadcast("drain").results(timeout_s=_DRAIN_CALL_S)
    except (RayServeException, TimeoutError) as error:
        _LOG.warning("gateways were not drained", extra={"why": str(error)})
        return
    threading.Event().wait(settings.server.drain_s)
