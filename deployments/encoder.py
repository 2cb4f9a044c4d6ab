"""Encoder replica: clips in, references to latents out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deployments.engine import load_engine
from deployments.meter import RayMeter
from deployments.references import fetch_frames, put_latent
from deployments.store import open_store
from deployments.upkeep import Upkeep, begin_replica, keep_announcing, replica_name
from streamer.records import Clip, Encoded, ModelInfo
from streamer.serving.encoding import EncodingService
from streamer.serving.stage_times import StageTimes
from streamer.settings import Settings
from streamer.store.protocol import Presence
from streamer.telemetry import BothMeters

__all__ = ["EncoderReplica"]


class EncoderReplica:
    """Thin skin around `EncodingService`; ready when it is warm."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        begin_replica(log_level=settings.log.level)
        engine, times = await load_engine(settings), StageTimes()
        self._service = EncodingService(
            engine.model,
            device=engine.device,
            config=engine.config.encoder,
            batch=engine.config.encode_batch,
            meter=BothMeters(RayMeter(), times),
        )
        await self._service.warm_up(frames=settings.sampling.frames)
        self._pulse = engine.pulse
        self._upkeep = Upkeep()
        self._upkeep.start(self._pulse.run())
        presence = Presence(kind="encoder", replica=replica_name(), model=self._service.info)
        store = open_store(settings.store)
        self._upkeep.start(
            keep_announcing(store, presence, is_well=self._pulse.is_beating, stages=times.now)
        )

    async def describe(self) -> ModelInfo:
        """The model served."""
        return self._service.info

    async def encode(self, clip: Clip, frames: list[Any]) -> Encoded:
        """Encode one clip whose `frames` are behind `[ObjectRef]`; the latent is behind one, too.

        Raises: as `EncodingService.encode`; `CapacityError` when the frames were lost.
        """
        return await put_latent(await self._service.encode(await fetch_frames(clip, frames)))

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
        return await self._service.latents(
            await fetch_frames(clip, frames),
            context_ids=context_ids,
            target_ids=target_ids,
            start_s=start_s,
        )

    async def check_health(self) -> None:
        self._upkeep.check()
        self._pulse.check()
