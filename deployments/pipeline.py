"""`streamer.sessions.pipeline.Pipeline` over deployment handles."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import ray

from deployments.config import by_reference
from deployments.streams import ask, tell_all, translated
from streamer.records import AnticipationReply, AnticipationRequest, Clip, Encoded, ModelInfo

__all__ = ["RayPipeline"]

_NO_FRAMES = np.empty((0, 0, 0, 3), dtype=np.uint8)


class RayPipeline:
    """Puts the frames of a clip into the object store once and passes references on.

    A replica that dies with a clip in flight is a `CapacityError` for that clip; the next call
    goes to another replica, or waits for the successor.

    Args:
        encoder, rollout: handles of the two deployments; of one and the same when fused.
    """

    def __init__(self, encoder: Any, rollout: Any) -> None:
        self._encoder = by_reference(encoder)
        self._rollout = by_reference(rollout)

    async def describe(self) -> ModelInfo:
        """The model that the encoder serves. Raises `CapacityError`."""
        info: ModelInfo = await ask("encoder", self._encoder.describe.remote())
        return info

    async def encode(self, clip: Clip) -> Encoded:
        # Only now, not when the clip was made: superseded clips never enter the object store.
        with translated("ingest"):
            frames = await asyncio.to_thread(ray.put, clip.frames)
        call = self._encoder.encode.remote(replace(clip, frames=_NO_FRAMES), [frames])
        encoded: Encoded = await ask("encoder", call)
        return encoded

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        call = self._rollout.anticipate.remote(encoded, request)
        reply: AnticipationReply = await ask("rollout", call)
        return reply

    async def latents(
        self,
        clip: Clip,
        *,
        context_ids: Sequence[int] | None = None,
        target_ids: Sequence[int] | None = None,
        start_s: float = 0.0,
    ) -> bytes:
        """As `streamer.sessions.served.Served.latents`."""
        with translated("gateway"):
            frames = await asyncio.to_thread(ray.put, clip.frames)
        call = self._encoder.latents.remote(
            replace(clip, frames=_NO_FRAMES),
            [frames],
            context_ids=context_ids,
            target_ids=target_ids,
            start_s=start_s,
        )
        content: bytes = await ask("encoder", call)
        return content

    async def supersede(self, stream: str, clip: int) -> None:
        await tell_all("rollout", self._rollout, "supersede", stream, clip)
