"""Environment variables that Ray reads when it is imported. This module imports no ray.

They must be set before the first ``import ray`` of the process that starts the cluster; its
processes inherit them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["GUARDS", "LOOPBACK", "prepare"]

GUARDS: Mapping[str, str] = MappingProxyType(
    {
        # An ObjectRef inside a by-value (gRPC) call is pickled out of band, and Ray then pins the
        # object until its owner dies: every latent would stay. RAY_SERVE_THROUGHPUT_OPTIMIZED=1
        # switches gRPC on unless this says no.
        "RAY_SERVE_USE_GRPC_BY_DEFAULT": "0",
        # Replicas without a GPU keep CUDA_VISIBLE_DEVICES as it is, and Ray does not warn.
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray notes each call for its dashboard, of which there is none: replicas and GCS grow by
        # 600 MB an hour at first, until the GCS has its 100 000 calls.
        "RAY_task_events_report_interval_ms": "0",
    }
)

LOOPBACK: Mapping[str, str] = MappingProxyType(
    {
        # The only way to keep a Ray on loopback: _node_ip_address="127.0.0.1" alone is
        # silently replaced by the address of the network card, and GCS, raylet and workers listen
        # there. (The name speaks of other systems; on Linux it has this effect.)
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        # HAProxy binds 0.0.0.0 (statistics, metrics) whatever the HTTP host says. In Kubernetes,
        # where a NetworkPolicy stands before it, it is the better proxy.
        "RAY_SERVE_ENABLE_HA_PROXY": "0",
    }
)


def prepare(*, on_loopback: bool) -> None:
    """Set what must be set, whatever the user's environment says. Call before importing ray.

    Args:
        on_loopback: for a Ray of our own, and one of others that listens on loopback only.
    """
    os.environ.update(GUARDS)
    if on_loopback:
        os.environ.update(LOOPBACK)
    # The cluster's processes find our packages even when they run from a checkout.
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if root in sys.path and root not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *paths])
