"""What every replica does besides its work: say that it lives, log, notice that it does not."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from ray import serve

from deployments.exposure import listen_on_node_only
from streamer.errors import CapacityError
from streamer.outage import Outage
from streamer.store.protocol import Presence, StageTime, Store

__all__ = ["Upkeep", "begin_replica", "keep_announcing", "replica_name"]

_PERIOD_S = 1.0
# Four announcements may be lost, for example while the store restarts.
_TTL_S = 5.0

_LOG = logging.getLogger("streamer.deployments.upkeep")


def replica_name() -> str:
    """For people and leases: deployment, Serve's replica id and the process it runs in."""
    context = serve.get_replica_context()
    return f"{context.deployment}#{context.replica_id.unique_id}@{os.getpid()}"


def begin_replica(*, log_level: str) -> None:
    """First call in every replica's constructor: log with Serve, listen on the node only."""
    _join_serve_log(log_level)
    listen_on_node_only()


def _join_serve_log(level: str) -> None:
    """Write our log where Serve writes its own, with its replica and request ids.

    Serve configures only the logger `ray.serve`; what `streamer` says would go nowhere.
    """
    ours = logging.getLogger("streamer")
    ours.handlers = list(logging.getLogger("ray.serve").handlers)
    ours.setLevel(level.upper())
    ours.propagate = False


async def keep_announcing(
    store: Store,
    presence: Presence,
    *,
    is_well: Callable[[], bool] = lambda: True,
    stages: Callable[[], dict[str, StageTime]] = dict,
) -> None:
    """Announce for ever; a replica that is not well keeps silent. Cancellation: safe.

    Args:
        stages: how long its newest batches took.
    """
    outage = Outage(
        _LOG, lost="the store does not take announcements", back="the store takes them again"
    )
    while True:
        if is_well():
            try:
                await store.announce(replace(presence, stages=stages()), ttl_s=_TTL_S)
            except CapacityError as error:
                outage.failed(error.message)
            else:
                outage.went_well()
        await asyncio.sleep(_PERIOD_S)


class Upkeep:
    """Background tasks of a replica that never end; one that does makes the replica unhealthy.

    Serve has no hook at the start of a drain and cancels nothing: unless stopped, the
    tasks end with the process.
    """

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, task: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(task))

    async def stop(self) -> None:
        """Cancel the tasks and wait for them; `check` has nothing to complain about afterwards."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def check(self) -> None:
        """For `check_health`: raises what ended a task, so that Serve replaces the replica."""
        for task in self._tasks:
            if task.done():
                task.result()
                raise RuntimeError("a background task of this replica ended")
