"""The two applications; `streamer serve` and a Serve config (`import_path`) build them here."""

from __future__ import annotations

from typing import Any

from ray import serve
from ray.serve import Application

from deployments.config import (
    ENCODER,
    FUSED,
    ROLLOUT,
    edge_options,
    encoder_options,
    fused_options,
    ingest_options,
    rollout_options,
    supervisor_options,
)
from deployments.gateway import GatewayReplica
from deployments.ingest import IngestReplica
from deployments.supervisor import SupervisorReplica
from streamer.settings import Settings, load_settings

__all__ = ["edge", "pipeline"]


def pipeline(args: Settings | dict[str, Any]) -> Application:
    """Supervisor -> ingest -> models; has no route.

    Args:
        args: settings, or (from a Serve config) options that win over environment and file.

    Raises:
        ConfigError: options that cannot work.
    """
    settings = _settings(args)
    encoder, rollout = _models(settings)
    ingest = _bound(
        IngestReplica,
        settings,
        encoder,
        rollout,
        name="Ingest",
        options=ingest_options(settings.ray),
    )
    return _bound(
        SupervisorReplica, settings, ingest, name="Supervisor", options=supervisor_options()
    )


def edge(args: Settings | dict[str, Any]) -> Application:
    """The gateway; has the route ``/``.

    Args:
        args: as for `pipeline`.
    """
    settings = _settings(args)
    options = edge_options(settings.ray, max_subscribers=settings.gateway.max_subscribers)
    return _bound(serve.ingress()(GatewayReplica), settings, name="Gateway", options=options)


def _settings(args: Settings | dict[str, Any]) -> Settings:
    return args if isinstance(args, Settings) else load_settings(options=args)


def _models(settings: Settings) -> tuple[Application, Application]:
    """What encodes and what rolls out: one deployment when fused."""
    # By name, because these modules import torch, which only their replicas need.
    layout = settings.ray
    if layout.placement == "fused":
        fused = _bound(
            "deployments.fused.FusedReplica", settings, name=FUSED, options=fused_options(layout)
        )
        return fused, fused
    encoder = _bound(
        "deployments.encoder.EncoderReplica",
        settings,
        name=ENCODER,
        options=encoder_options(layout),
    )
    rollout = _bound(
        "deployments.rollout.RolloutReplica",
        settings,
        name=ROLLOUT,
        options=rollout_options(layout),
    )
    return encoder, rollout


def _bound(
    replica: type | str, /, *arguments: Any, name: str, options: dict[str, Any]
) -> Application:
    # Any: Serve takes the import path of a class as well, which its annotations do not say.
    decorate: Any = serve.deployment(name=name, **options)
    bound: Application = decorate(replica).bind(*arguments)
    return bound
