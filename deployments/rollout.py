"""Rollout replica: latents in by reference, events into the store, futures out by reference."""

from __future__ import annotations

from deployments.engine import load_engine
from deployments.meter import RayMeter
from deployments.references import fetch_latent, fetch_prior, put_prior
from deployments.store import open_store
from deployments.upkeep import Upkeep, begin_replica, keep_announcing, replica_name
from streamer.records import AnticipationReply, AnticipationRequest, Encoded
from streamer.serving.anticipating import AnticipationService
from streamer.serving.stage_times import StageTimes
from streamer.settings import Settings
from streamer.store.protocol import Presence
from streamer.telemetry import BothMeters

__all__ = ["RolloutReplica"]


class RolloutReplica:
    """Thin skin around `AnticipationService`; ready when it is warm."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        begin_replica(log_level=settings.log.level)
        engine, times = await load_engine(settings), StageTimes()
        store = open_store(settings.store)
        self._service = AnticipationService(
            engine.model,
            store=store,
            device=engine.device,
            config=engine.config.rollout,
            surprise=engine.config.surprise,
            batch=engine.config.rollout_batch,
            pictures=engine.config.pictures,
            meter=BothMeters(RayMeter(), times),
        )
        await self._service.warm_up(frames=settings.sampling.frames)
        self._device = engine.device_name
        self._pulse = engine.pulse
        self._upkeep = Upkeep()
        self._upkeep.start(self._pulse.run())
        presence = Presence(kind="rollout", replica=replica_name(), model=self._service.info)
        self._upkeep.start(
            keep_announcing(store, presence, is_well=self._pulse.is_beating, stages=times.now)
        )

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        """Make and append one event.

        Raises: as `AnticipationService.anticipate`; `LatentLost`.
        """
        latent = await fetch_latent(encoded, device=self._device)
        reply = await self._service.anticipate(
            latent,
            await fetch_prior(request, device=self._device),
            queue_ms=encoded.queue_ms,
            encode_ms=encoded.encode_ms,
        )
        return await put_prior(reply)

    async def supersede(self, stream: str, clip: int) -> None:
        """As `AnticipationService.supersede`; called on all replicas, of which one has it."""
        self._service.supersede(stream=stream, clip=clip)

    async def check_health(self) -> None:
        self._upkeep.check()
        self._pulse.check()
