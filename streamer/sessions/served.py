"""What a gateway can ask of the models: a pipeline without a log, and latents as a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from streamer.errors import CapacityError
from streamer.records import AnticipationReply, AnticipationRequest, Clip, Encoded, ModelInfo
from streamer.sessions.pipeline import Pipeline

__all__ = ["LateServed", "Served"]

_LOADING_RETRY_S = 5.0


class Served(Pipeline, Protocol):
    """The models of this service, wherever they run. Every method is safe to cancel."""

    async def describe(self) -> ModelInfo:
        """The model that is served. Raises `CapacityError` while there is none."""

    async def latents(
        self,
        clip: Clip,
        *,
        context_ids: Sequence[int] | None = None,
        target_ids: Sequence[int] | None = None,
        start_s: float = 0.0,
    ) -> bytes:
        """Latents of one clip, or a masked prediction inside it, as a safetensors file.

        Args:
            context_ids: tokens to see; None: all but the targets.
            target_ids: tokens to predict; None: no prediction, but the latents of the clip.
            start_s: where the clip begins in its file; goes into the file's metadata.

        Raises:
            ConfigError: ids that the clip does not have.
            ShapeMismatch: the clip does not fit the model.
            CapacityError: the model's queue is full, or its replica died.
        """


class LateServed:
    """A `Served` that refuses everything until it has been given the models."""

    def __init__(self) -> None:
        self._served: Served | None = None

    def give(self, served: Served) -> None:
        self._served = served

    async def describe(self) -> ModelInfo:
        return await self._now().describe()

    async def encode(self, clip: Clip) -> Encoded:
        return await self._now().encode(clip)

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        return await self._now().anticipate(encoded, request)

    async def supersede(self, stream: str, clip: int) -> None:
        await self._now().supersede(stream, clip)

    async def latents(
        self,
        clip: Clip,
        *,
        context_ids: Sequence[int] | None = None,
        target_ids: Sequence[int] | None = None,
        start_s: float = 0.0,
    ) -> bytes:
        return await self._now().latents(
            clip, context_ids=context_ids, target_ids=target_ids, start_s=start_s
        )

    def _now(self) -> Served:
        if self._served is None:
            raise CapacityError(
                "No model is loaded yet; /readyz tells when one is.", _LOADING_RETRY_S
            )
        return self._served
