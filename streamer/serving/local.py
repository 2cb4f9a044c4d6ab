"""Encoder and rollout side by side on one device: nothing is copied between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamer.events.panels import Panels
from streamer.models.vjepa2 import VJepa2
from streamer.records import AnticipationReply, AnticipationRequest, Clip, Encoded, ModelInfo
from streamer.serving.anticipating import AnticipationService
from streamer.serving.config import ServingConfig
from streamer.serving.device import DeviceThread
from streamer.serving.encoding import EncodingService
from streamer.serving.picturing import Scene
from streamer.store.protocol import Store
from streamer.telemetry import Meter

__all__ = ["LocalPipeline"]


class LocalPipeline:
    """Both halves of a `streamer.sessions.pipeline.Pipeline` in this process.

    Args:
        model: on its device, in eval mode.
        store: where events are appended.
    """

    def __init__(
        self,
        model: VJepa2,
        *,
        store: Store,
        config: ServingConfig | None = None,
        meter: Meter | None = None,
    ) -> None:
        config = config or ServingConfig()
        self._device = DeviceThread(config=config.device)
        self._encoding = EncodingService(
            model,
            device=self._device,
            config=config.encoder,
            batch=config.encode_batch,
            meter=meter,
        )
        self._anticipating = AnticipationService(
            model,
            store=store,
            device=self._device,
            config=config.rollout,
            surprise=config.surprise,
            batch=config.rollout_batch,
            pictures=config.pictures,
            meter=meter,
        )

    @property
    def info(self) -> ModelInfo:
        """The model served."""
        return self._encoding.info

    async def encode(self, clip: Clip) -> Encoded:
        """As `EncodingService.encode`."""
        return replace(await self._encoding.encode(clip), shares_device=True)

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        """As `AnticipationService.anticipate`."""
        return await self._anticipating.anticipate(
            encoded.latent, request, queue_ms=encoded.queue_ms, encode_ms=encoded.encode_ms
        )

    async def describe(self) -> ModelInfo:
        """The model served."""
        return self.info

    async def latents(
        self,
        clip: Clip,
        *,
        context_ids: Sequence[int] | None = None,
        target_ids: Sequence[int] | None = None,
        start_s: float = 0.0,
    ) -> bytes:
        """As `EncodingService.latents`."""
        return await self._encoding.latents(
            clip, context_ids=context_ids, target_ids=target_ids, start_s=start_s
        )

    async def supersede(self, stream: str, clip: int) -> None:
        """As `AnticipationService.supersede`."""
        self._anticipating.supersede(stream=stream, clip=clip)

    async def draw(self, encoded: Encoded, reply: AnticipationReply) -> Panels:
        """The latent picture of an event, as `Picturing.draw`."""
        prior = reply.prior
        assert prior is not None, "an answer of this pipeline holds its futures"
        scene = Scene(
            latent=encoded.latent,
            futures=prior.tokens,
            horizons_s=prior.horizons_s,
            seq=prior.seq,
        )
        return await self._anticipating.picturing.draw(scene)

    async def warm_up(self, *, frames: int | None = None) -> None:
        """Run both once; `frames` per clip, by default as the model was trained."""
        await self._encoding.warm_up(frames=frames)
        await self._anticipating.warm_up(frames=frames)

    async def close(self) -> None:
        """Refuse new work, answer what was accepted, end the device's thread. Idempotent."""
        await self._encoding.close()
        await self._anticipating.close()
        await self._device.close()
