"""Encoder and rollout side by side on one device: nothing is copied between them."""

from __future__ import annotations

from streamer.models.vjepa2 import VJepa2
from streamer.records import AnticipationReply, AnticipationRequest, Clip, Encoded, ModelInfo
from streamer.serving.anticipating import AnticipationService
from streamer.serving.config import ServingConfig
from streamer.serving.device import DeviceThread
from streamer.serving.encoding import EncodingService
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
            meter=meter,
        )

    @property
    def info(self) -> ModelInfo:
        """The model served."""
        return self._encoding.info

    async def encode(self, clip: Clip) -> Encoded:
        """As `EncodingService.encode`."""
        return await self._encoding.encode(clip)

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        """As `AnticipationService.anticipate`."""
        return await self._anticipating.anticipate(
            encoded.latent, request, queue_ms=encoded.queue_ms, encode_ms=encoded.encode_ms
        )

    async def warm_up(self, *, frames: int | None = None) -> None:
        """Run both once; `frames` per clip, by default as the model was trained."""
        await self._encoding.warm_up(frames=frames)
        await self._anticipating.warm_up(frames=frames)

    async def close(self) -> None:
        """Refuse new work, answer what was accepted, end the device's thread. Idempotent."""
        await self._encoding.close()
        await self._anticipating.close()
        await self._device.close()
