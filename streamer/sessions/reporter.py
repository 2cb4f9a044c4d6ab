"""Collects what the parts of a session count and writes it to the store, with a TTL."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from streamer.clock import monotonic_ns
from streamer.errors import CapacityError
from streamer.frames.rate import RateMeter
from streamer.outage import Outage
from streamer.sessions.announcer import Announcer
from streamer.sessions.carrier import Carrier
from streamer.sessions.config import SessionConfig
from streamer.sessions.intake import Intake
from streamer.sessions.status import Counts, SessionStatus
from streamer.store.protocol import Lease, Store
from streamer.telemetry import Meter

__all__ = ["Reporter"]

_LOG = logging.getLogger(__name__)
_STATUS = Outage(_LOG, lost="status not written", back="status written again")
"""Of all sessions of this process."""
_FATES = ("used", "sampled_out", "dropped")
_RATE_SPAN_S = 2.0


class Reporter:
    """Reads totals that others keep; keeps only the rates and what the meter was told last."""

    def __init__(
        self,
        store: Store,
        *,
        lease: Lease,
        announcer: Announcer,
        intake: Intake,
        carrier: Carrier,
        config: SessionConfig,
        meter: Meter,
    ) -> None:
        self._store = store
        self._lease = lease
        self._announcer = announcer
        self._intake = intake
        self._carrier = carrier
        self._config = config
        self._meter = meter
        self._fps_in = RateMeter(span_s=_RATE_SPAN_S, settle_s=_RATE_SPAN_S)
        self._fps_used = RateMeter(span_s=_RATE_SPAN_S, settle_s=_RATE_SPAN_S)
        self._metered = Counts()
        self._metered_reconnects = 0
        self._revision = 0

    def follow(self, revision: int) -> None:
        """The session does now what this revision of the stream's record asks for: say so soon."""
        self._revision = revision
        self._announcer.news.set()

    async def run(self) -> None:
        """Report once a period and at each new state, for ever. Cancellation is safe."""
        while True:
            self._announcer.news.clear()
            try:
                await self.report()
            except CapacityError as error:
                _STATUS.failed(error.message)
            else:
                _STATUS.went_well()
            # Not wait_for: on Python 3.11 it swallows a cancellation that comes with the news.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._config.status_s):
                    await self._announcer.news.wait()

    async def report(self) -> None:
        """Write one status now. Cancellation is safe."""
        self.tell_meter()
        await self._store.put_status(
            self._lease.stream,
            self.status(now_ns=monotonic_ns()).as_json(),
            lease=self._lease.token,
            ttl_s=self._config.status_ttl_s,
        )

    def tell_meter(self) -> None:
        """What was counted since the last time; 0 too, so that the series are there. Once more at
        the end, or the last second would be missing."""
        stream, counts = self._lease.stream, self._intake.counts
        for fate in _FATES:
            new = getattr(counts, fate) - getattr(self._metered, fate)
            self._meter.add("streamer_frames_total", new, stream=stream, fate=fate)
        self._metered = counts
        reconnects = self._announcer.reconnects
        new = reconnects - self._metered_reconnects
        self._meter.add("streamer_source_reconnects_total", new, stream=stream)
        self._metered_reconnects = reconnects
        self._tell_clock()

    def _tell_clock(self) -> None:
        reading, stream = self._intake.reading, self._lease.stream
        if reading is None:
            return
        if reading.offset_s is not None:
            self._meter.observe(
                "streamer_source_clock_offset_seconds", reading.offset_s, stream=stream
            )
        if reading.drift_ppm is not None:
            drift = reading.drift_ppm / 1e6
            self._meter.observe("streamer_source_clock_drift_ratio", drift, stream=stream)

    def status(self, *, now_ns: int) -> SessionStatus:
        counts, carrier = self._intake.counts, self._carrier
        return SessionStatus(
            state=self._announcer.state,
            source=self._intake.source_name,
            owner=self._lease.owner,
            revision=self._revision,
            fps_in=_rate(self._fps_in, counts.pictures, now_ns=now_ns),
            fps_used=_rate(self._fps_used, counts.used + counts.filled, now_ns=now_ns),
            counts=counts,
            clips_encoded=carrier.encoded,
            clips_published=carrier.published,
            clips_superseded=self._intake.superseded,
            clips_rejected=carrier.rejected,
            rollouts_superseded=carrier.cut_short,
            lag_s=carrier.lag_s,
            last_error=carrier.last_error,
            reading=self._intake.reading,
        )


def _rate(meter: RateMeter, total: int, *, now_ns: int) -> float | None:
    """Per second, to two digits; None until a whole span is known."""
    meter.add(now_ns / 1e9, total=total)
    return None if meter.fps is None or meter.span_s < _RATE_SPAN_S else round(meter.fps, 2)
