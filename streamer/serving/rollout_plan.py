"""Before a rollout: whether the latent can be rolled out, and how far."""

# N tokens  D width

from __future__ import annotations

import torch

from streamer.errors import ModelError
from streamer.futures.config import RolloutConfig, horizon_step, plan_horizons
from streamer.records import AnticipationRequest, Latent, ModelInfo

__all__ = ["RolloutPlan"]


class RolloutPlan:
    """What holds for every rollout of one model.

    Args:
        info: of the model.
        side: tokens of a row of its grid, and rows.
        width: of a token.
    """

    def __init__(self, info: ModelInfo, *, side: int, width: int, config: RolloutConfig) -> None:
        self._info = info
        self._side = side
        self._width = width
        self._config = config

    def check(self, latent: Latent) -> None:
        """Raises `ModelError` for a latent of another model, or one that is normed."""
        if latent.model != self._info.fingerprint:
            raise ModelError(
                f"The latent was made by model {latent.model}; this rollout runs "
                f"{self._info.name} ({self._info.fingerprint}). Use one model for both."
            )
        if latent.normed:
            raise ModelError("The latent is layer-normed already; a rollout needs it raw.")

    def horizons_s(self, latent: Latent, request: AnticipationRequest) -> tuple[float, ...]:
        """Ascending whole steps. Raises `ConfigError`, `HorizonUnreachable`."""
        return plan_horizons(
            request.horizons_s,
            mode=request.mode,
            frames=latent.grid[0] * self._info.tubelet,
            fps=request.fps,
            tubelet=self._info.tubelet,
            trained_frames=self._info.trained_frames,
            context=self._config.context_tubelets,
        )

    def steps(self, horizons_s: tuple[float, ...], *, fps: float) -> tuple[int, ...]:
        """Their steps, in the same order."""
        return tuple(horizon_step(each, fps=fps, tubelet=self._info.tubelet) for each in horizons_s)

    def blank(self, *, frames: int) -> Latent:
        """A latent of zeros `[N, D]`, for a warm-up."""
        tubelets = frames // self._info.tubelet
        return Latent(
            stream="",
            clip=0,
            tokens=torch.zeros(tubelets * self._side**2, self._width),
            normed=False,
            grid=(tubelets, self._side, self._side),
            model=self._info.fingerprint,
        )
