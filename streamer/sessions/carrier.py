"""One clip at a time through the pipeline, with what one clip's answer gives to the next."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from streamer.clock import monotonic_ns
from streamer.errors import CapacityError, NumericalError, StreamerError
from streamer.records import AnticipationRequest, Clip, Encoded, Prior, StreamSpec, SurpriseState
from streamer.sessions.config import SessionConfig
from streamer.sessions.pipeline import Pipeline
from streamer.sessions.slot import ClipSlot
from streamer.store.protocol import Lease
from streamer.telemetry import Meter

__all__ = ["Carrier"]

_LOG = logging.getLogger(__name__)
_FATES = ("published", "superseded", "rejected")


class Carrier:
    """Encode, anticipate, remember. Owned by one session; all counts are running totals.

    Args:
        spec: mode, horizons and sampling of the stream.
        lease: the stream's lease; its token goes with every request.
    """

    def __init__(
        self,
        spec: StreamSpec,
        *,
        lease: Lease,
        pipeline: Pipeline,
        config: SessionConfig,
        meter: Meter,
    ) -> None:
        self.encoded = 0
        self.published = 0
        self.rejected = 0
        """Clips dropped because the models had no room, or gave no finite numbers."""
        self.lag_s: float | None = None
        """Arrival of the newest picture to publication, of the last event."""
        self.last_error = ""
        self._spec = spec
        self._lease = lease
        self._pipeline = pipeline
        self._config = config
        self._meter = meter
        self._prior: Prior | None = None
        self._surprise = SurpriseState()
        self._untold = 0
        for fate in _FATES:
            self._count(fate, 0)

    async def carry_live(self, clips: ClipSlot) -> None:
        """Publish the clips of a live source until the slot closes. A clip is dropped and counted
        when the models have no room, or give no finite numbers.

        Raises:
            LeaseLost: the stream is no longer ours.
            ModelError: the model cannot take this stream's clips.
        """
        told = 0
        while (clip := await clips.get()) is not None:
            skipped, told = clips.superseded - told, clips.superseded
            self._untold += skipped
            self._count("superseded", skipped)
            try:
                await self._publish(clip, notes=self._staleness(clip))
            except (CapacityError, NumericalError) as error:
                self._reject(error)

    async def carry_file(self, clips: ClipSlot) -> None:
        """Publish all clips of a file: where nothing may be lost, no room means wait.

        Raises:
            LeaseLost: the stream is no longer ours.
            ModelError: the model cannot take this stream's clips.
        """
        while (clip := await clips.get()) is not None:
            await self._publish_at_last(clip)

    async def _publish_at_last(self, clip: Clip) -> None:
        while True:
            try:
                return await self._publish(clip, notes=())
            except CapacityError as error:
                self.last_error = error.message
                await asyncio.sleep(error.retry_after_s)

    def _staleness(self, clip: Clip) -> tuple[str, ...]:
        waited_s = (monotonic_ns() - clip.arrived_ns) / 1e9
        is_stale = waited_s > self._config.stale_strides * self._spec.sampling.stride_s
        return ("stale_window",) if is_stale else ()

    async def _publish(self, clip: Clip, *, notes: tuple[str, ...]) -> None:
        waited_ms = (monotonic_ns() - clip.arrived_ns) / 1e6 - clip.assemble_ms
        encoded = await self._pipeline.encode(clip)
        self.encoded += 1
        encoded = replace(encoded, queue_ms=encoded.queue_ms + max(0.0, waited_ms))
        await self._anticipate(clip, encoded, notes=notes)

    async def _anticipate(self, clip: Clip, encoded: Encoded, *, notes: tuple[str, ...]) -> None:
        reply = await self._pipeline.anticipate(encoded, self._request(clip, notes=notes))
        self._prior, self._surprise = reply.prior, reply.surprise
        self._untold = 0
        self.published += 1
        self.lag_s = (monotonic_ns() - clip.arrived_ns) / 1e9
        self.last_error = ""
        self._count("published", 1)
        self._meter.observe("streamer_clip_staleness_seconds", self.lag_s, stream=clip.stream)

    def _request(self, clip: Clip, *, notes: tuple[str, ...]) -> AnticipationRequest:
        return AnticipationRequest(
            stream=clip.stream,
            lease=self._lease.token,
            mode=self._spec.mode,
            horizons_s=self._spec.horizons_s,
            clip=clip.index,
            start_ns=clip.start_ns,
            end_ns=clip.end_ns,
            frames=len(clip.frames),
            fps=clip.fps,
            first_frame=clip.first_frame,
            last_frame=clip.last_frame,
            last_tick=clip.last_tick,
            dropped=clip.dropped + self._untold_ticks(len(clip.frames)),
            filled=clip.filled,
            padded=clip.padded,
            clock=clip.clock,
            generation=clip.generation,
            notes=_clip_notes(clip) + notes,
            decode_ms=clip.decode_ms,
            assemble_ms=clip.assemble_ms,
            surprise=self._surprise,
            prior=self._prior,
        )

    def _untold_ticks(self, frames: int) -> int:
        """Ticks of this window whose own clip was never published."""
        sampling = self._spec.sampling
        return min(frames, self._untold * round(sampling.stride_s * sampling.fps))

    def _reject(self, error: StreamerError) -> None:
        self.rejected += 1
        self._untold += 1
        self.last_error = error.message
        self._count("rejected", 1)
        _LOG.debug("clip rejected", extra={"stream": self._lease.stream, "error": error.message})

    def _count(self, fate: str, count: int) -> None:
        self._meter.add("streamer_clips_total", count, stream=self._lease.stream, fate=fate)


def _clip_notes(clip: Clip) -> tuple[str, ...]:
    facts = {
        "degraded_fps": clip.degraded_fps,
        "padded": clip.padded > 0,
        "filled": clip.filled > 0,
    }
    return tuple(note for note, holds in facts.items() if holds)
