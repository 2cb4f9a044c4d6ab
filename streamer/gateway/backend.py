"""What a gateway stands on. A shell (local process, cluster) builds one and calls `build_app`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Literal

from fastapi import Depends
from starlette.requests import HTTPConnection

from streamer.events.config import FeedConfig
from streamer.gateway.config import GatewayConfig
from streamer.gateway.uploads import Uploads
from streamer.prometheus_meter import PrometheusMeter
from streamer.records import StreamSpec
from streamer.sources.policy import SourcePolicy
from streamer.store.protocol import Store
from streamer.telemetry import BothMeters, Meter

__all__ = ["Backend", "Build", "FromBackend", "Kind"]

Kind = Literal["ingest", "encoder", "rollout", "supervisor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Facts for `/version`."""

    version: str
    commit: str = ""
    """Commit of the source it was built from; empty when unknown."""
    runtime: Literal["local", "ray"] = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """What the gateway knows of the rest of the service: a store, rules, perhaps its models."""

    store: Store
    policy: SourcePolicy
    build: Build
    feed: FeedConfig = field(default_factory=FeedConfig)
    config: GatewayConfig = field(default_factory=GatewayConfig)
    defaults: StreamSpec = field(default_factory=lambda: StreamSpec(source=""))
    """What a stream gets where its request does not say; the source is not looked at."""
    needs: tuple[Kind, ...] = ("ingest", "encoder", "rollout", "supervisor")
    """Replicas without which the gateway is not ready."""
    uploads: Uploads | None = None
    """The way to the models for callers' own files; None: this gateway serves feeds only."""
    metrics: PrometheusMeter = field(default_factory=PrometheusMeter)
    """What `/metrics` shows: of the gateway, and of whatever else counts into it."""
    also: Meter | None = None
    """Where the gateway's own numbers go as well; a cluster has its own exporter."""
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the shell when this process is to end: readiness turns false, feeds are closed with
    1012 and new ones refused. The shell waits a moment before it stops the server."""

    @property
    def meter(self) -> Meter:
        """Where the gateway counts."""
        return self.metrics if self.also is None else BothMeters(self.metrics, self.also)


async def _backend(connection: HTTPConnection) -> Backend:
    backend: Backend = connection.app.state.backend
    return backend


FromBackend = Annotated[Backend, Depends(_backend)]
