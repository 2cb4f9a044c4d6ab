"""How one stream is doing: its session's status and the latencies of its newest anticipations."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from streamer.clock import monotonic_ns
from streamer.errors import NotFound
from streamer.events.schema import Quantiles, StreamStats
from streamer.gateway.standing import standing
from streamer.store.protocol import LogSlice, Store

__all__ = ["StatsDesk", "quantiles"]

_RECENT = 60
_FRESH_NS = 900_000_000
_STATUS = (
    "state",
    "fps_in",
    "fps_used",
    "dropped",
    "clips_superseded",
    "clips_rejected",
    "rollouts_superseded",
    "lag_s",
    "clock",
    "clock_why",
    "clock_offset_s",
    "clock_drift_ppm",
)


class StatsDesk:
    """Answers for all feeds of a process with one look into the store a second.

    Args:
        store: where status and log are.
        stream: whose.
        clock: nanoseconds, monotonic.
    """

    def __init__(
        self, store: Store, stream: str, *, clock: Callable[[], int] = monotonic_ns
    ) -> None:
        self._store = store
        self._stream = stream
        self._clock = clock
        self._lock = asyncio.Lock()
        self._stats: StreamStats | None = None
        self._made_ns = 0
        self._epoch = ""
        self._seen_seq = 0
        self._latencies: deque[Mapping[str, float]] = deque(maxlen=_RECENT)

    async def stats(self) -> StreamStats:
        """Not older than a second. Safe to cancel. Raises as the store does."""
        async with self._lock:
            if self._stats is None or self._clock() - self._made_ns >= _FRESH_NS:
                self._stats = await self._look()
                self._made_ns = self._clock()
            return self._stats

    async def _look(self) -> StreamStats:
        status = await self._store.get_status(self._stream) or {}
        log = await self._store.read(self._stream, after_seq=self._seen_seq, limit=_RECENT)
        if log.epoch != self._epoch or log.head_seq < self._seen_seq:
            self._latencies.clear()
        if log.epoch != self._epoch or log.head_seq > self._seen_seq + len(log.entries):
            start_seq = max(0, log.head_seq - _RECENT)
            log = await self._store.read(self._stream, after_seq=start_seq, limit=_RECENT)
        self._take(log)
        known = {name: status[name] for name in _STATUS if status.get(name) is not None}
        if "state" not in known:
            known |= await self._state(log)
        return StreamStats(
            stream=self._stream,
            head_seq=log.head_seq,
            anticipations=len(self._latencies),
            latency_ms=quantiles(self._latencies),
            **known,
        )

    async def _state(self, log: LogSlice) -> dict[str, str]:
        """No session says it, but registry and log do."""
        try:
            record = await self._store.get_stream(self._stream)
        except NotFound:  # deleted; its log is still there
            return {}
        owner = (await self._store.lease_holders()).get(self._stream)
        found = await standing(self._store, record, owner=owner, log=log)
        return {"state": str(found["state"])}

    def _take(self, log: LogSlice) -> None:
        self._epoch, self._seen_seq = log.epoch, log.head_seq
        for entry in log.entries:
            event: dict[str, Any] = json.loads(entry.body)
            if event.get("type") == "anticipation":
                self._latencies.append(event.get("latency_ms", {}))


def quantiles(latencies: Iterable[Mapping[str, float]]) -> dict[str, Quantiles]:
    """Stage -> p50 and p95 (nearest rank), milliseconds."""
    by_stage: dict[str, list[float]] = {}
    for latency in latencies:
        for stage, value in latency.items():
            by_stage.setdefault(stage, []).append(value)
    return {
        stage: Quantiles(p50=_nearest_rank(values, 0.5), p95=_nearest_rank(values, 0.95))
        for stage, values in by_stage.items()
    }


def _nearest_rank(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, -(-round(part * 100) * len(ordered) // 100) - 1)]
