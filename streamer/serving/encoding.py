"""Clips of many streams to latents, in batches on one device thread."""

# B batch  T frames  N tokens  D width

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from torch import Tensor

from streamer.latents.config import EncoderConfig
from streamer.latents.encoder import Encoder
from streamer.models.vjepa2 import VJepa2
from streamer.records import Clip, Encoded, Latent, ModelInfo, Pixels
from streamer.serving.batcher import Batcher
from streamer.serving.clip_latents import clip_latents
from streamer.serving.config import BatchConfig
from streamer.serving.device import DeviceThread
from streamer.serving.model_info import model_info
from streamer.serving.transfer import read_tensor
from streamer.telemetry import Meter

__all__ = ["EncodingService"]


class EncodingService:
    """Encodes; keeps nothing of a stream.

    Args:
        model: on its device, in eval mode.
        device: shared with whatever else computes there; whoever made it closes it.
    """

    def __init__(
        self,
        model: VJepa2,
        *,
        device: DeviceThread,
        config: EncoderConfig | None = None,
        batch: BatchConfig | None = None,
        meter: Meter | None = None,
    ) -> None:
        config = config or EncoderConfig()
        batch = batch or BatchConfig()
        self.info: ModelInfo = model_info(model, dtype=config.dtype)
        self._model = model
        self._encoder = Encoder(model, config=config)
        self._device = device
        self._max_batch = batch.max_batch
        self._batcher = Batcher(
            self._encode,
            device=device,
            stage="encode",
            config=batch,
            key=lambda frames: frames.shape,
            meter=meter,
        )

    async def encode(self, clip: Clip) -> Encoded:
        """Wait for a place in a batch and give the clip's latent, raw, on the model's device.

        Cancellation is safe: a waiting clip is forgotten, of a running one the result.

        Raises:
            ShapeMismatch: the clip does not fit the model.
            NumericalError: the model gave values that are not finite.
            CapacityError: too many clips wait, or the service is closing.
        """
        frames = clip.frames
        self._encoder.check((1, *frames.shape), frames.dtype)
        done = await self._batcher.submit(frames)
        count, height, width, _ = frames.shape
        latent = Latent(
            stream=clip.stream,
            clip=clip.index,
            tokens=done.result,
            normed=False,
            grid=self._encoder.grid(count, height=height, width=width),
            model=self.info.fingerprint,
        )
        return Encoded(latent=latent, queue_ms=done.queue_ms, encode_ms=done.run_ms)

    async def latents(
        self,
        clip: Clip,
        *,
        context_ids: Sequence[int] | None = None,
        target_ids: Sequence[int] | None = None,
        start_s: float = 0.0,
    ) -> bytes:
        """As `clip_latents`, on the device. Cancellation is safe.

        Raises: as that; `CapacityError` when the device is closing.
        """
        compute = partial(
            clip_latents,
            self._model,
            clip,
            context_ids=context_ids,
            target_ids=target_ids,
            start_s=start_s,
            encoder=self._encoder,
        )
        return await self._device.run(compute)

    async def warm_up(self, *, frames: int | None = None) -> None:
        """Run once per batch size, so that the first real clip is not slow.

        Args:
            frames: per clip; None: as the model was trained.
        """
        count = frames or self.info.trained_frames
        for size in range(1, self._max_batch + 1):
            await self._device.run(partial(self._encoder.warm_up, frames=count, batch=size))

    async def close(self) -> None:
        """Refuse new clips, answer those accepted."""
        await self._batcher.close()

    def _encode(self, clips: Sequence[Pixels]) -> Sequence[Tensor]:
        stacked = clips[0][None] if len(clips) == 1 else np.stack(clips)
        return self._encoder.encode(read_tensor(stacked)).unbind(0)
