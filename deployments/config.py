"""What we ask of Ray Serve, all in one place, each number with the trap it avoids.

Times and counts are for Ray 2.60; the tests in `tests/serve/` hold the traps.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ray.serve.config import AutoscalingConfig

from streamer.layout import LayoutConfig

__all__ = [
    "EDGE_APP",
    "ENCODER",
    "FUSED",
    "PIPELINE_APP",
    "ROLLOUT",
    "by_reference",
    "edge_options",
    "encoder_options",
    "fused_options",
    "ingest_options",
    "rollout_options",
    "supervisor_options",
]

# Two applications: a new edge (gateway code, limits) does not restart models or sessions.
PIPELINE_APP = "pipeline"
EDGE_APP = "edge"

# Names of deployments that are found from the other application.
ENCODER = "Encoder"
ROLLOUT = "Rollout"
FUSED = "Fused"

_ALL: Mapping[str, Any] = MappingProxyType(
    {
        # Default 10: a crashed replica is missed for 10 s. At 1, its successor answers after 2 s.
        "health_check_period_s": 1.0,
        # A replica that is busy with a batch on two cores is late, not dead.
        "health_check_timeout_s": 10.0,
        # Default 2: pure waiting when a replica stops.
        "graceful_shutdown_wait_loop_s": 0.1,
        # Default 20: a model that cannot be loaded is tried for minutes before anybody is told.
        "max_constructor_retry_count": 2,
    }
)

# A CPU is bookkeeping only (no cgroup, no affinity). Small fractions let the whole graph fit on
# the smallest machine.
_LIGHT_CPUS = 0.1
_MODEL_CPUS = 0.5

# Of a stream at most one clip is encoded and one rolled out, so this many streams share one model
# replica before calls wait in the handles. Must be well above the batch size, or batches never fill
# (default 5).
_MODEL_CALLS = 64
# Per calling replica. A full queue means "drop this clip"; a burst is admitted by this number
# alone, so it covers the streams of one ingest replica.
_MODEL_QUEUE = 64


def encoder_options(layout: LayoutConfig) -> dict[str, Any]:
    return {
        **_model_options(gpus=layout.encoder_gpus),
        **_encoder_pool(layout),
    }


def _encoder_pool(layout: LayoutConfig) -> dict[str, Any]:
    if layout.most_encoders == layout.encoder_replicas:
        return {"num_replicas": layout.encoder_replicas}
    return {
        "autoscaling_config": AutoscalingConfig(
            min_replicas=layout.encoder_replicas,
            max_replicas=layout.most_encoders,
            # One clip computed, one waiting; beyond that the clips of live streams grow stale.
            target_ongoing_requests=2.0,
            # Loading weights takes longer than a burst lasts: dropping clips is for seconds,
            # scaling for minutes.
            upscale_delay_s=10.0,
            downscale_delay_s=600.0,
        )
    }


def _model_options(*, gpus: float) -> dict[str, Any]:
    return {
        **_ALL,
        "max_ongoing_requests": _MODEL_CALLS,
        "max_queued_requests": _MODEL_QUEUE,
        "graceful_shutdown_timeout_s": 10.0,  # the batch in flight on a CPU takes seconds
        "ray_actor_options": {"num_cpus": _MODEL_CPUS, "num_gpus": gpus},
    }


def rollout_options(layout: LayoutConfig) -> dict[str, Any]:
    return {
        **_model_options(gpus=layout.rollout_gpus),
        "num_replicas": layout.rollout_replicas,
    }


def fused_options(layout: LayoutConfig) -> dict[str, Any]:
    return {
        **_model_options(gpus=layout.encoder_gpus),
        # Latents stay in the replica's own memory, so there is exactly one.
        "num_replicas": 1,
        # Encodes must not keep anticipations out.
        "max_ongoing_requests": 2 * _MODEL_CALLS,
    }


def ingest_options(layout: LayoutConfig) -> dict[str, Any]:
    return {
        **_ALL,
        # A stream is one ongoing request: this is how many cameras one replica decodes.
        "max_ongoing_requests": layout.streams_per_replica,
        # No limit here: a stream beyond all replicas waits in the supervisor's handle, where it
        # makes the autoscaler start another one. The supervisor's max_sessions is the bound.
        "max_queued_requests": -1,
        "autoscaling_config": AutoscalingConfig(
            min_replicas=1,
            max_replicas=layout.ingest_replicas,
            # Scale before the last place is taken.
            target_ongoing_requests=0.75 * layout.streams_per_replica,
            upscale_delay_s=2.0,
            # Scaling down kills the newest replica whatever it is doing, and its streams move:
            # only after a long time with few streams.
            downscale_delay_s=600.0,
        ),
        # Sessions never end by themselves, so waiting for them is waiting in vain.
        "graceful_shutdown_timeout_s": 5.0,
        "ray_actor_options": {"num_cpus": _LIGHT_CPUS},
    }


def supervisor_options() -> dict[str, Any]:
    return {
        **_ALL,
        # Two would only fight over leases.
        "num_replicas": 1,
        "graceful_shutdown_timeout_s": 5.0,
        "ray_actor_options": {"num_cpus": _LIGHT_CPUS},
    }


def edge_options(layout: LayoutConfig, *, max_subscribers: int) -> dict[str, Any]:
    return {
        **_ALL,
        "num_replicas": layout.edge_replicas,
        # An open socket is one ongoing request, and with the default of 5 the sixth client hangs
        # in its handshake and every GET behind it. The gateway itself refuses subscribers beyond
        # its own limit with a sentence, so this one must be higher.
        "max_ongoing_requests": 2 * max_subscribers + 1000,
        # Sockets do not end by themselves either; after this time they are cut without a close
        # frame (1006), which clients treat as "connect again and resume".
        "graceful_shutdown_timeout_s": 2.0,
        "ray_actor_options": {"num_cpus": _LIGHT_CPUS},
    }


def by_reference(handle: Any) -> Any:
    """The handle for calls that carry ObjectRefs; see `environment.GUARDS`."""
    return handle.options(_by_reference=True)
