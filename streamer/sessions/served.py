"""What a gateway can ask of the models: a pipeline without a log, and latents as a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from streamer.errors import CapacityError
from streamer.records import Clip, ModelInfo
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
    """The models, once they are there. Call it for them."""

    def __init__(self) -> None:
        self._served: Served | None = None

    def give(self, served: Served | None) -> None:
        """They are there; None: no longer."""
        self._served = served

    def __call__(self) -> Served:
        """Raises `CapacityError` before they are there."""
        if self._served is None:
            raise CapacityError(
                "No model is loaded yet; /readyz tells when one is.", _LOADING_RETRY_S
            )
        return self._served
