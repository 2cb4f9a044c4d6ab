"""`/metrics` for Prometheus: this process's numbers, and the state of every stream from the store.

In the local shell that is the whole service. On a cluster each replica's numbers come from the
cluster's exporter, those of the gateways too; here are those of the gateway that answers.
"""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response

from streamer.errors import StreamerError
from streamer.gateway.backend import Backend, FromBackend
from streamer.gateway.gathering import asked_of_each
from streamer.gateway.guard import GuardedRoute, needs
from streamer.metrics import ALL_STATES
from streamer.prometheus_meter import CONTENT_TYPE
from streamer.records import StreamRecord
from streamer.store.protocol import Store

__all__ = ["router"]

router = APIRouter(tags=["health"], route_class=GuardedRoute)

_PAGE = 1000


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
@needs("read")
async def metrics(backend: FromBackend) -> Response:
    """The text format of Prometheus; answers without a store, too. Safe to cancel."""
    try:
        async with asyncio.timeout(backend.config.store_timeout_s):
            states = await _states(backend.store)
    except (StreamerError, TimeoutError):
        backend.metrics.observe("streamer_store_up", 0)
    else:
        backend.metrics.observe("streamer_store_up", 1)
        _show(backend, states)
    return Response(backend.metrics.exposition(), media_type=CONTENT_TYPE)


def _show(backend: Backend, states: dict[str, str]) -> None:
    """Only here: every gateway sees the same states, so a cluster must not add them up."""
    backend.metrics.keep_streams(states)
    for stream, now in states.items():
        for state in ALL_STATES:
            backend.metrics.observe(
                "streamer_source_state", state == now, stream=stream, state=state
            )


async def _states(store: Store) -> dict[str, str]:
    """Registered stream -> its state."""
    states: dict[str, str] = {}
    after = ""
    while True:
        page = await store.list_streams(after=after, limit=_PAGE)
        found = await asked_of_each(page, lambda record: _state(store, record))
        states |= {record.stream: state for record, state in zip(page, found, strict=True)}
        if len(page) < _PAGE:
            return states
        after = page[-1].stream


async def _state(store: Store, record: StreamRecord) -> str:
    if record.outcome:
        return "failed" if record.outcome == "quarantined" else record.outcome
    status = await store.get_status(record.stream) or {}
    return str(status.get("state", "paused" if record.desired == "paused" else "starting"))
