"""Waiting until applications run, with an end and a reason.

`serve.run` waits for ever for a replica that no node has room for.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Any

import ray
from ray import serve

from deployments.config import encoder_options, fused_options, rollout_options
from streamer.clock import monotonic_ns
from streamer.errors import CapacityError, ConfigError
from streamer.layout import LayoutConfig

__all__ = ["check_room", "wait_running"]

_POLL_S = 0.1


def check_room(layout: LayoutConfig, *, total: Mapping[str, float] | None = None) -> None:
    """Refuse a layout whose models need more than a Ray of this size ever has.

    Only for a Ray that does not grow. `total` is `ray.cluster_resources()`, which is asked for
    when it is None.

    Raises:
        ConfigError: with what is asked for and what there is.
    """
    if total is None:
        total = ray.cluster_resources()  # type: ignore[no-untyped-call]  # as Ray has it
    if layout.placement == "fused":
        pools = [(1, fused_options(layout))]
    else:
        pools = [
            (layout.encoder_replicas, encoder_options(layout)),
            (layout.rollout_replicas, rollout_options(layout)),
        ]
    for resource, option in (("GPU", "num_gpus"), ("CPU", "num_cpus")):
        asked = sum(count * p["ray_actor_options"].get(option, 0) for count, p in pools)
        there = total.get(resource, 0)
        if asked > there:
            raise ConfigError(
                f"The model replicas ask Ray for {asked:g} {resource}, and it has {there:g}. Lower"
                " ray.encoder_gpus, ray.rollout_gpus or the number of replicas, or join a larger"
                " cluster with ray.address."
            )


def wait_running(names: Collection[str], *, timeout_s: float) -> None:
    """Return when these applications run. A signal handler that raises ends the wait.

    Raises:
        ConfigError: one of them failed, with what its replicas said.
        CapacityError: not in time, with what is still missing.
    """
    end_ns = monotonic_ns() + int(timeout_s * 1e9)
    pause = threading.Event()
    while True:
        found = serve.status().applications
        states = {name: found[name].status if name in found else "NOT_STARTED" for name in names}
        if failed := [name for name in names if "FAILED" in states[name]]:
            told = _said(found, "fail") or "; ".join(found[name].message for name in failed)
            raise ConfigError(f"The service cannot start. {told}")
        if all(state == "RUNNING" for state in states.values()):
            return
        if monotonic_ns() >= end_ns:
            raise CapacityError(
                f"The replicas did not start within {timeout_s:g} s. {_said(found, '')} Give them"
                " more time with ray.ready_s, or fewer or smaller ones in the section ray."
            )
        pause.wait(_POLL_S)


def _said(applications: Mapping[str, Any], state: str) -> str:
    """What deployments in such a state say, without the frames of Serve around it."""
    told = []
    for name, application in applications.items():
        for deployment, status in application.deployments.items():
            lines = [line.strip() for line in status.message.splitlines() if line.strip()]
            if lines and state in status.status.lower():
                told.append(f"{name}/{deployment}: {lines[-1]}")
    return "; ".join(told)
