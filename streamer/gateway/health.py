"""Is the process alive, is the service ready, what is it."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, Response

from streamer.clock import monotonic_ns
from streamer.errors import StreamerError
from streamer.gateway.backend import Backend, FromBackend
from streamer.gateway.guard import GuardedRoute, open_to_all
from streamer.gateway.schema import Check, Readiness, Version
from streamer.store.protocol import Presence

__all__ = ["router"]

router = APIRouter(tags=["health"], route_class=GuardedRoute)

_LAG_PROBE_S = 0.02
_UNREADY: dict[int | str, dict[str, Any]] = {
    503: {"model": Readiness, "description": "a check failed; `reason` says why"}
}


@router.get("/healthz", summary="Is this process alive?", responses=_UNREADY)
@open_to_all
async def healthz(response: Response, backend: FromBackend) -> Readiness:
    """Measures how late the event loop wakes up; late by more than a second is unhealthy."""
    started_ns = monotonic_ns()
    await asyncio.sleep(_LAG_PROBE_S)
    lag_s = max(0.0, (monotonic_ns() - started_ns) / 1e9 - _LAG_PROBE_S)
    ok = lag_s < backend.config.max_loop_lag_s
    return _answer(response, [Check(name="event_loop", ok=ok, reason=f"lag {lag_s:.3f} s")])


@router.get("/readyz", summary="Is the service ready?", responses=_UNREADY)
@open_to_all
async def readyz(response: Response, backend: FromBackend) -> Readiness:
    """Models warmed up, every kind of replica present, store reachable, not draining."""
    is_draining = backend.draining.is_set()
    draining = Check(
        name="draining", ok=not is_draining, reason="shutting down" if is_draining else "no"
    )
    return _answer(response, [draining, *await _store_checks(backend)])


@router.get("/version", summary="What is running here?")
@open_to_all
async def version(backend: FromBackend) -> Version:
    build = backend.build
    return Version(
        version=build.version,
        commit=build.commit,
        runtime=build.runtime,
        python=platform.python_version(),
    )


def _answer(response: Response, checks: list[Check]) -> Readiness:
    ready = all(check.ok for check in checks)
    if not ready:
        response.status_code = 503
        response.headers["Retry-After"] = "1"
    return Readiness(ready=ready, checks=checks)


async def _store_checks(backend: Backend) -> list[Check]:
    try:
        async with asyncio.timeout(backend.config.store_timeout_s):
            present = {kind: await backend.store.present(kind) for kind in backend.needs}
    except TimeoutError:
        reason = f"no answer within {backend.config.store_timeout_s:g} s"
        return [Check(name="store", ok=False, reason=reason)]
    except StreamerError as error:
        return [Check(name="store", ok=False, reason=error.message)]
    checks = [Check(name="store", ok=True, reason="reachable")]
    checks += [_count(kind, replicas) for kind, replicas in present.items()]
    if "encoder" in present and "rollout" in present:
        checks.append(_same_model(present["encoder"], present["rollout"]))
    return checks


def _count(kind: str, replicas: list[Presence]) -> Check:
    number = len(replicas)
    reason = f"{number} present" if number else f"no {kind} replica has announced itself"
    return Check(name=kind, ok=number > 0, reason=reason)


def _same_model(encoders: list[Presence], rollouts: list[Presence]) -> Check:
    shared = _names(encoders) & _names(rollouts)
    reason = ", ".join(sorted(shared)) or "encoder and rollout replicas share no warm model"
    return Check(name="model", ok=bool(shared), reason=reason)


def _names(replicas: Iterable[Presence]) -> set[str]:
    models = [replica.model for replica in replicas if replica.model is not None]
    return {f"{model.name} {model.fingerprint}" for model in models}
