"""Clips through the pipeline, one ahead of the other, with what one's answer gives to the next.

While a clip is rolled out the next one is encoded already, unless both want the same device. Of a
stream there is never more than one clip in either, so events come in the order of the clips.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from streamer.clock import monotonic_ns
from streamer.errors import CapacityError, LatentLost, NumericalError, StreamerError
from streamer.records import AnticipationRequest, Clip, StreamSpec
from streamer.sessions.carried import Carried
from streamer.sessions.config import SessionConfig
from streamer.sessions.continuity import Continuity
from streamer.sessions.episodes import EpisodeKeeper
from streamer.sessions.handover import Handover, overlapped
from streamer.sessions.pipeline import Pipeline
from streamer.sessions.refusals import Refusals, Teller
from streamer.sessions.requests import request_of
from streamer.sessions.slot import ClipSlot
from streamer.store.protocol import Lease
from streamer.telemetry import Meter

__all__ = ["Carrier"]

_LOG = logging.getLogger(__name__)
_FATES = ("published", "superseded", "rejected")
_SAY_AGAIN_S = 0.5


class Carrier:
    """Encode, anticipate, remember. Owned by one session; all counts are running totals.

    Args:
        spec: mode, horizons and sampling of the stream.
        lease: the stream's lease; its token goes with every request.
        teller: is told when several clips in a row gave no event.
        episodes: closes episodes of surprise whose end was not heard.
    """

    def __init__(
        self,
        spec: StreamSpec,
        *,
        lease: Lease,
        pipeline: Pipeline,
        teller: Teller,
        episodes: EpisodeKeeper,
        config: SessionConfig,
        meter: Meter,
    ) -> None:
        self.encoded = 0
        self.published = 0
        self.rejected = 0
        """Clips dropped because the models had no room, or gave no finite numbers."""
        self.cut_short = 0
        """Published ones that a newer clip superseded before they had all their horizons."""
        self.lag_s: float | None = None
        """Arrival of the newest picture to publication, of the last event."""
        self.last_error = ""
        self._spec = spec
        self._lease = lease
        self._pipeline = pipeline
        self._config = config
        self._meter = meter
        self._refusals = Refusals(teller, told_from=config.rejections_told)
        self._continuity = Continuity(lease.stream, episodes=episodes, meter=meter)
        self._untold = 0
        """Clips thrown away since the last event, as far as the rollouts go."""
        for fate in _FATES:
            self._count(fate, 0)
        self._count_superseded(0)

    async def carry_live(self, clips: ClipSlot) -> None:
        """Publish the clips of a live source until the slot closes. A clip is dropped and counted
        when the models have no room, or give no finite numbers; once it is encoded, the rollout of
        the one before it is superseded.

        Cancellation loses the clips in flight, at most two.

        Raises:
            LeaseLost: the stream is no longer ours.
            ModelError: the model cannot take this stream's clips.
        """
        handover: Handover[Carried] = Handover()
        ahead, behind = self._encode_newest(clips, handover), self._roll_newest(handover)
        await overlapped(ahead, behind, handover)

    async def carry_file(self, clips: ClipSlot) -> None:
        """Publish all clips of a file, whole and once each: no room means wait.

        Cancellation and errors: as `carry_live`.
        """
        handover: Handover[Carried] = Handover()
        ahead, behind = self._encode_each(clips, handover), self._roll_each(handover)
        await overlapped(ahead, behind, handover)

    def change(self, spec: StreamSpec) -> None:
        """From the next clip on: other horizons, another mode. The sampling must be the same."""
        self._spec = spec

    def tell_closed(self) -> None:
        """The session is over: whatever episode was open is so no more, for the meter."""
        self._continuity.closed()

    # live ---------------------------------------------------------------------------------------
    async def _encode_newest(self, clips: ClipSlot, handover: Handover[Carried]) -> None:
        told = untold = 0
        while (clip := await clips.get()) is not None:
            skipped, told = clips.superseded - told, clips.superseded
            self._count("superseded", skipped)
            untold += skipped
            try:
                carried = await self._encode(clip)
            except (CapacityError, NumericalError) as error:
                self._reject(error)
                untold += 1
                continue
            await self._give(replace(carried, untold=untold), handover)
            untold = 0
            if carried.encoded.shares_device:
                # Taken now, the next clip would only wait for the device and grow old.
                await handover.finished()

    async def _give(self, carried: Carried, handover: Handover[Carried]) -> None:
        """To the rollout at once; the one before it ends soon."""
        if (unfinished := handover.in_hand) is None:
            await handover.give(carried)
            return
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(self._supersede(unfinished.clip))
            await handover.give(carried)
            asking.cancel()

    async def _supersede(self, clip: Clip) -> None:
        """Say it until cancelled: the request may be on its way to its replica still."""
        while True:
            try:
                await self._pipeline.supersede(clip.stream, clip.index)
            except CapacityError as error:
                _LOG.debug("not superseded", extra=self._about(error))
            await asyncio.sleep(_SAY_AGAIN_S)

    async def _roll_newest(self, handover: Handover[Carried]) -> None:
        while (carried := await handover.take()) is not None:
            self._untold += carried.untold
            try:
                await self._anticipate(carried, notes=self._staleness(carried))
            except (CapacityError, NumericalError) as error:
                self._reject(error)
                self._untold += 1
            handover.done()

    def _staleness(self, carried: Carried) -> tuple[str, ...]:
        waited_s = carried.waited_s(now_ns=monotonic_ns())
        is_stale = waited_s > self._config.stale_strides * self._spec.sampling.stride_s
        return ("stale_window",) if is_stale else ()

    # file ---------------------------------------------------------------------------------------
    async def _encode_each(self, clips: ClipSlot, handover: Handover[Carried]) -> None:
        while (clip := await clips.get()) is not None:
            await handover.give(await self._encode_at_last(clip))

    async def _encode_at_last(self, clip: Clip) -> Carried:
        while True:
            try:
                return await self._encode(clip)
            except CapacityError as error:
                await self._wait_for_room(error)

    async def _roll_each(self, handover: Handover[Carried]) -> None:
        while (carried := await handover.take()) is not None:
            await self._anticipate_at_last(carried)
            handover.done()

    async def _anticipate_at_last(self, carried: Carried) -> None:
        while True:
            try:
                if await self._continuity.has_event(carried.clip):
                    return self._published(carried.clip)
                return await self._anticipate(carried)
            except LatentLost as error:
                await self._wait_for_room(error)
                carried = await self._encode_at_last(carried.clip)
            except CapacityError as error:
                await self._wait_for_room(error)

    async def _wait_for_room(self, error: CapacityError) -> None:
        self.last_error = error.message
        await asyncio.sleep(error.retry_after_s)

    # both ---------------------------------------------------------------------------------------
    async def _encode(self, clip: Clip) -> Carried:
        waited_ms = (monotonic_ns() - clip.arrived_ns) / 1e6 - clip.assemble_ms
        encoded = await self._pipeline.encode(clip)
        self.encoded += 1
        encoded = replace(encoded, queue_ms=encoded.queue_ms + max(0.0, waited_ms))
        return Carried(clip=clip, encoded=encoded, encoded_ns=monotonic_ns())

    async def _anticipate(self, carried: Carried, *, notes: tuple[str, ...] = ()) -> None:
        clip, encoded = carried.clip, carried.encoded
        waited_ms = (monotonic_ns() - carried.encoded_ns) / 1e6
        encoded = replace(encoded, queue_ms=encoded.queue_ms + waited_ms)
        await self._continuity.catch_up()
        try:
            reply = await self._pipeline.anticipate(encoded, self._request(clip, notes=notes))
        except CapacityError:
            self._continuity.unheard()
            raise
        self._continuity.heard(reply)
        self.cut_short += reply.is_superseded
        self._count_superseded(reply.is_superseded)
        self._published(clip)

    def _published(self, clip: Clip) -> None:
        self._untold = 0
        self.published += 1
        self.lag_s = (monotonic_ns() - clip.arrived_ns) / 1e9
        self.last_error = ""
        self._refusals.published()
        self._count("published", 1)
        self._meter.observe("streamer_clip_staleness_seconds", self.lag_s, stream=clip.stream)

    def _request(self, clip: Clip, *, notes: tuple[str, ...]) -> AnticipationRequest:
        return request_of(
            clip,
            spec=self._spec,
            lease=self._lease.token,
            untold=self._untold,
            notes=notes,
            prior=self._continuity.prior,
            surprise=self._continuity.surprise,
        )

    def _reject(self, error: StreamerError) -> None:
        self.rejected += 1
        self.last_error = error.message
        self._refusals.refused(error)
        self._count("rejected", 1)
        _LOG.debug("clip rejected", extra=self._about(error))

    def _about(self, error: StreamerError) -> dict[str, str]:
        return {"stream": self._lease.stream, "error": error.message}

    def _count(self, fate: str, count: int) -> None:
        self._meter.add("streamer_clips_total", count, stream=self._lease.stream, fate=fate)

    def _count_superseded(self, count: int) -> None:
        self._meter.add("streamer_rollouts_superseded_total", count, stream=self._lease.stream)
