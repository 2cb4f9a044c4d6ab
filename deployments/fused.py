"""Encoder and rollout in one replica: latents stay where they are made.

The session still makes two calls, as with separate pools, and carries a ticket between them in
place of a latent. There is exactly one such replica (`LayoutConfig` sees to it): a ticket is worth
nothing elsewhere, and after a restart the clip is dropped like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deployments.engine import load_engine
from deployments.meter import RayMeter
from deployments.references import fetch_frames, fetch_prior, put_prior
from deployments.shelf import DropOldestShelf, Ticket
from deployments.store import open_store
from deployments.upkeep import Upkeep, begin_replica, keep_announcing, replica_name
from streamer.clock import monotonic_ns
from streamer.errors import CapacityError, LatentLost
from streamer.records import (
    AnticipationReply,
    AnticipationRequest,
    Clip,
    Encoded,
    Latent,
    ModelInfo,
)
from streamer.serving.anticipating import AnticipationService
from streamer.serving.encoding import EncodingService
from streamer.serving.stage_times import StageTimes
from streamer.settings import Settings
from streamer.store.protocol import Presence
from streamer.telemetry import BothMeters

__all__ = ["FusedReplica"]

# Each stream has one latent here between its two calls, and one whose rollout was refused until it
# is old: a file comes again for it.
_SHELF_SIZE = 64
_SHELF_AGE_NS = 30_000_000_000


class FusedReplica:
    """Both services on one model and one device thread; ready when they are warm."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        begin_replica(log_level=settings.log.level)
        engine = await load_engine(settings)
        config, times = engine.config, StageTimes()
        meter = BothMeters(RayMeter(), times)
        store = open_store(settings.store)
        self._encoding = EncodingService(
            engine.model,
            device=engine.device,
            config=config.encoder,
            batch=config.encode_batch,
            meter=meter,
        )
        self._anticipating = AnticipationService(
            engine.model,
            store=store,
            device=engine.device,
            config=config.rollout,
            surprise=config.surprise,
            batch=config.rollout_batch,
            pictures=config.pictures,
            meter=meter,
        )
        await self._encoding.warm_up(frames=settings.sampling.frames)
        await self._anticipating.warm_up(frames=settings.sampling.frames)
        self._shelf: DropOldestShelf[Latent] = DropOldestShelf(
            _SHELF_SIZE, max_age_ns=_SHELF_AGE_NS
        )
        self._name = replica_name()
        self._device = engine.device_name
        self._pulse = engine.pulse
        self._upkeep = Upkeep()
        self._upkeep.start(self._pulse.run())
        for kind in ("encoder", "rollout"):
            presence = Presence(kind=kind, replica=self._name, model=self._encoding.info)
            self._upkeep.start(
                keep_announcing(store, presence, is_well=self._pulse.is_beating, stages=times.now)
            )

    async def describe(self) -> ModelInfo:
        """The model served."""
        return self._encoding.info

    async def encode(self, clip: Clip, frames: list[Any]) -> Encoded:
        """As `EncoderReplica.encode`, with a `Ticket` for the latent."""
        encoded = await self._encoding.encode(await fetch_frames(clip, frames))
        number = self._shelf.put(encoded.latent, now_ns=monotonic_ns())
        ticket = Ticket(replica=self._name, number=number)
        return replace(encoded, latent=ticket, shares_device=True)

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        """As `RolloutReplica.anticipate`, for a `Ticket` of this replica."""
        ticket: Ticket = encoded.latent
        latent = self._take(ticket)
        try:
            reply = await self._anticipating.anticipate(
                latent,
                await fetch_prior(request, device=self._device),
                queue_ms=encoded.queue_ms,
                encode_ms=encoded.encode_ms,
            )
        except CapacityError:
            self._shelf.put_back(latent, ticket.number, now_ns=monotonic_ns())
            raise
        return await put_prior(reply)

    async def supersede(self, stream: str, clip: int) -> None:
        """As `AnticipationService.supersede`."""
        self._anticipating.supersede(stream=stream, clip=clip)

    async def latents(
        self,
        clip: Clip,
        frames: list[Any],
        *,
        context_ids: Sequence[int] | None,
        target_ids: Sequence[int] | None,
        start_s: float,
    ) -> bytes:
        """As `EncodingService.latents`, for a clip whose `frames` are behind `[ObjectRef]`."""
        return await self._encoding.latents(
            await fetch_frames(clip, frames),
            context_ids=context_ids,
            target_ids=target_ids,
            start_s=start_s,
        )

    async def check_health(self) -> None:
        self._upkeep.check()
        self._pulse.check()

    def _take(self, ticket: Ticket) -> Latent:
        latent = self._shelf.take(ticket.number) if ticket.replica == self._name else None
        if latent is None:
            raise LatentLost(
                "The latent of this clip was lost with the replica that made it. Encode it again."
            )
        return latent
