"""What the model saw last, as one small JPEG per stride in the store."""

from __future__ import annotations

import asyncio
import logging

from streamer.errors import CapacityError
from streamer.frames.jpeg import JpegEncoder
from streamer.outage import Outage
from streamer.records import Frame
from streamer.sessions.config import SessionConfig
from streamer.sessions.intake import Intake
from streamer.store.protocol import Lease, Store, StoredPicture
from streamer.telemetry import Meter

__all__ = ["Snapshots"]

_LOG = logging.getLogger(__name__)
_STORED = Outage(_LOG, lost="snapshot not written", back="snapshots written again")
"""Of all sessions of this process."""
_MIN_WAIT_S, _MAX_WAIT_S = 0.05, 1.0
_NEARLY = 0.9


class Snapshots:
    """Looks at the intake's newest frame; the decode thread knows nothing of it.

    Args:
        stride_s: of the stream's clips.
    """

    def __init__(
        self,
        store: Store,
        *,
        lease: Lease,
        intake: Intake,
        stride_s: float,
        config: SessionConfig,
        meter: Meter,
    ) -> None:
        self._store = store
        self._lease = lease
        self._intake = intake
        self._stride_s = stride_s
        self._ttl_s = max(config.snapshot_ttl_s, 3 * stride_s)
        self._meter = meter
        self._encoder = JpegEncoder(max_bytes=config.snapshot_bytes)

    async def run(self) -> None:
        """At most one per stride, for ever. Cancellation is safe.

        Raises:
            LeaseLost: the stream is no longer ours.
        """
        shown: Frame | None = None
        while True:
            frame = self._intake.newest
            wait_s = min(max(self._stride_s / 8, _MIN_WAIT_S), _MAX_WAIT_S)
            if frame is not None and frame is not shown:
                shown, wait_s = frame, self._stride_s * _NEARLY
                await self._show(frame)
            await asyncio.sleep(wait_s)

    async def _show(self, frame: Frame) -> None:
        body = await asyncio.to_thread(self._encoder.encode, frame.pixels)
        if body is None:
            self._count("dropped")
            return
        # In microseconds, as events tell times: so one is found by the time an event tells.
        captured_ns = max(0, frame.captured_at_ns // 1000 * 1000)
        picture = StoredPicture(captured_at_ns=captured_ns, media_type="image/jpeg", body=body)
        stream, lease = self._lease.stream, self._lease.token
        try:
            await self._store.put_picture(
                stream, lease=lease, kind="snapshot", picture=picture, ttl_s=self._ttl_s
            )
        except CapacityError as error:
            _STORED.failed(error.message)
            self._count("failed")
        else:
            _STORED.went_well()
            self._count("stored")

    def _count(self, fate: str) -> None:
        self._meter.add("streamer_pictures_total", kind="snapshot", fate=fate)
