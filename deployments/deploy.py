"""What a running cluster is told from outside: deploy, drain.

Import only after `deployments.environment.prepare`.
"""

from __future__ import annotations

import asyncio
import logging

from ray import serve
from ray.exceptions import RayError
from ray.serve import RunTarget
from ray.serve.exceptions import RayServeException
from ray.serve.schema import LoggingConfig

from deployments.app import edge, pipeline
from deployments.config import EDGE_APP, PIPELINE_APP
from deployments.rollcall import wait_running
from deployments.store import store_actor
from streamer.errors import ConfigError
from streamer.settings import Settings
from streamer.store.open import check_store

__all__ = ["deploy", "drain"]

_LOG = logging.getLogger("streamer.deployments.deploy")
_CALL_S = 5.0


def deploy(settings: Settings) -> None:
    """Both applications side by side; returns when every replica is warm.

    Raises:
        ConfigError: a replica cannot be made, with what it said; or the store cannot serve.
        CapacityError: the store does not answer, or replicas are missing after `ray.ready_s`.
    """
    if settings.store.url:
        asyncio.run(check_store(settings.store))
    else:
        store_actor(settings.store)  # so that it has these bounds, whoever comes first
    log = LoggingConfig(log_level=settings.log.level.upper(), enable_access_log=False)
    targets = [
        RunTarget(pipeline(settings), name=PIPELINE_APP, route_prefix=None, logging_config=log),
        RunTarget(edge(settings), name=EDGE_APP, route_prefix="/", logging_config=log),
    ]
    try:
        serve.run_many(targets, wait_for_applications_running=False)
    except (RuntimeError, RayServeException) as error:
        raise ConfigError(f"The service cannot start. {error}") from error
    wait_running((PIPELINE_APP, EDGE_APP), timeout_s=settings.ray.ready_s)


def drain(settings: Settings) -> None:
    """Let every gateway say goodbye to its sockets, for at most `server.drain_s`; then let every
    session end in order.
    """
    _drain_gateways(settings.server.drain_s)
    try:
        serve.get_app_handle(PIPELINE_APP).drain.remote().result(timeout_s=_CALL_S)
        ingest = serve.get_deployment_handle("Ingest", PIPELINE_APP)
        ingest.broadcast("drain").results(timeout_s=_CALL_S)
    except (RayError, RayServeException, TimeoutError) as error:
        _LOG.warning("sessions were not ended in order", extra={"why": str(error)})


def _drain_gateways(limit_s: float) -> None:
    try:
        gateways = serve.get_app_handle(EDGE_APP)
        left = sum(gateways.broadcast("drain", limit_s).results(timeout_s=limit_s + _CALL_S))
    except (RayError, RayServeException, TimeoutError) as error:
        _LOG.warning("gateways were not drained", extra={"why": str(error)})
        return
    if left:
        _LOG.warning("sockets were still open", extra={"sockets": left})
