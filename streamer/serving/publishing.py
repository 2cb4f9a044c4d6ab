"""From an event to its number: into the stream's log, or back to a caller who has no stream."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.clock import monotonic_ns
from streamer.events.schema import AnticipationBody, retained_body
from streamer.records import AnticipationRequest
from streamer.store.protocol import Store
from streamer.telemetry import Meter

__all__ = ["Published", "Publisher"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What became of an event."""

    seq: int
    body: bytes | None
    """The event as JSON when it was appended nowhere."""


class Publisher:
    """Appends anticipations and tells the meter how old they were.

    Args:
        store: where events are appended.
    """

    def __init__(self, store: Store, *, meter: Meter) -> None:
        self._store = store
        self._meter = meter

    async def publish(self, request: AnticipationRequest, body: AnticipationBody) -> Published:
        """Append the event, unless the request brings its own number.

        Cancellation: the event may or may not be in the log.

        Raises:
            LeaseLost: the lease in the request is no longer the stream's.
            CapacityError: the store is out of reach or full.
        """
        message = retained_body(body)
        if request.number is not None:
            return Published(seq=request.number, body=message)
        started_ns = monotonic_ns()
        seq = await self._store.append(request.stream, lease=request.lease, body=message)
        self._observe(request, body, spent_s=(monotonic_ns() - started_ns) / 1e9)
        return Published(seq=seq, body=None)

    async def publish_episode(self, request: AnticipationRequest, body: bytes | None) -> None:
        """Append what is to be told of an episode, if anything; after the clip's own event, and
        not for a request that brings its own number.

        Whoever is cut off between the two leaves an episode that nobody closes: the stream's next
        session does. Cancellation and errors as with `publish`.
        """
        if body is not None and request.number is None:
            await self._store.append(request.stream, lease=request.lease, body=body)

    def _observe(
        self, request: AnticipationRequest, body: AnticipationBody, *, spent_s: float
    ) -> None:
        self._meter.observe("streamer_stage_seconds", spent_s, stage="publish")
        for stage in ("decode", "assemble", "queue"):
            stage_s = getattr(body.latency_ms, stage) / 1e3
            self._meter.observe("streamer_stage_seconds", stage_s, stage=stage)
        if request.clock != "file":
            total_s = body.latency_ms.total / 1e3
            self._meter.observe("streamer_capture_to_event_seconds", total_s, stream=request.stream)
