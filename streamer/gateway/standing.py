"""How a stream stands: what its session says, or what follows from registry and log without one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from streamer.clock import wall_ns
from streamer.records import StreamRecord
from streamer.store.protocol import LogSlice, Store

__all__ = ["standing"]

_OVER = ("ended", "failed", "paused")
_WAITING = {"state": "starting", "reason": "waiting"}


async def standing(
    store: Store, record: StreamRecord, *, owner: str | None, log: LogSlice
) -> Mapping[str, Any]:
    """The session's own words while there is one. Safe to cancel.

    Args:
        store: where they are.
        record: what is wanted of the stream.
        owner: who holds its lease; None: nobody.
        log: a slice of its log as it is now.

    Returns:
        `state` and perhaps `reason`, `detail` and whatever else a session reports.
    """
    if record.outcome in ("ended", "failed"):
        return await _last_words(store, record, log, states=(record.outcome,)) or {
            "state": record.outcome
        }
    status = await store.get_status(record.stream) or {}
    if record.outcome == "quarantined":
        return _quarantined(status)
    if await _is_of_before(store, record, status, owner=owner, log=log):
        status = {}
    if record.desired == "paused":
        return {"state": "paused"} if owner is None else _pausing(status)
    if "state" in status and status.get("reason") != "quarantined":  # set free a moment ago
        return status
    words = await _last_words(store, record, log, states=("starting", "reconnecting"))
    return _WAITING if words is None or owner else words


async def _is_of_before(
    store: Store,
    record: StreamRecord,
    status: Mapping[str, Any],
    *,
    owner: str | None,
    log: LogSlice,
) -> bool:
    """Whether a session left this status that was over before the newest change of what is wanted.
    A running one has not seen the change yet, and its words hold."""
    if int(status.get("revision", record.revision)) >= record.revision:
        return False
    if owner is None or status.get("state") in _OVER:
        return True
    return await _last_words(store, record, log, states=_OVER) is not None


def _pausing(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The camera is still open: the session has yet to let go of it."""
    if "state" not in status:
        return {"state": "paused"}
    return {**status, "reason": "pausing", "detail": "", "retry_in_s": None}


def _quarantined(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The supervisor says until when."""
    until_ns = int(status.get("until_ns", 0))
    return {
        "state": "failed",
        "reason": "quarantined",
        "detail": status.get("detail", ""),
        "retry_in_s": round(max(0, until_ns - wall_ns()) / 1e9, 1),
    }


async def _last_words(
    store: Store, record: StreamRecord, log: LogSlice, *, states: Sequence[str]
) -> Mapping[str, Any] | None:
    """Whoever spoke last for the stream left a reason in the log's last event, if it is one of
    these states."""
    last = await store.read(record.stream, after_seq=max(log.head_seq - 1, 0), limit=1)
    for entry in last.entries:
        body: dict[str, Any] = json.loads(entry.body)
        if body.get("type") == "stream.state" and body.get("state") in states:
            return body
    return None
