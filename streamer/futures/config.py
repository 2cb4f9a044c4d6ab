"""Which horizons a rollout can reach and what they mean in seconds. Knows no tensors.

A *step* is one tubelet of time, ``tubelet / fps`` seconds. Step k predicts the k-th tubelet after
the newest one seen: frames ``(k-1)*tubelet + 1`` to ``k*tubelet`` after the last frame of the clip.
A *horizon* is the end of a predicted tubelet in seconds after that frame, in both rollout modes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from streamer.errors import ConfigError, HorizonUnreachable
from streamer.records import RolloutMode

__all__ = [
    "AnticipativeConfig",
    "RolloutConfig",
    "SurpriseConfig",
    "context_tubelets",
    "future_offsets_s",
    "gap_steps",
    "horizon_of",
    "horizon_step",
    "plan_horizons",
]

_MAX_HORIZONS = 64
_STEP_SLACK = 1e-4
"""Share of a step that a horizon may exceed it by without being rounded up: a planned horizon,
rounded to the microsecond and planned again, stays what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutConfig:
    """How futures are predicted."""

    context_tubelets: int | None = None
    """Tubelets of context in contiguous mode; None: one less than the model was trained on, so
    that the target is always the last trained position. More gives extrapolated futures."""
    mask_index: int | None = None
    """Which mask token stands for a target; None: the checkpoint's own."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """What the predictor computes in; bfloat16 is autocast over float32 weights; on a
    CPU see `streamer.latents.config.EncoderConfig.dtype` before choosing it."""

    def __post_init__(self) -> None:
        if self.context_tubelets is not None and self.context_tubelets < 1:
            raise ConfigError(
                f"context_tubelets is {self.context_tubelets}; a rollout needs at least 1."
            )
        if self.mask_index is not None and self.mask_index < 0:
            raise ConfigError(f"mask_index is {self.mask_index}; it counts from 0.")
        if self.dtype not in ("float32", "bfloat16"):
            raise ConfigError(f"dtype is {self.dtype!r}; we know float32 and bfloat16.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnticipativeConfig:
    """The switches of upstream's anticipation wrapper."""

    fps: float = 8.0
    """Rate of the sampled clip."""
    num_output_frames: int = 2
    """Frames predicted per step; at least one tubelet."""
    num_steps: int = 1
    """Predictor calls, each feeding its output to the next."""
    no_predictor: bool = False
    """Give the encoder's tokens alone."""
    no_encoder: bool = False
    """Give the predicted tokens alone."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.fps) and self.fps > 0):
            raise ConfigError(f"fps is {self.fps}; it must be above 0.")
        if self.num_output_frames < 1 or self.num_steps < 1:
            raise ConfigError("num_output_frames and num_steps must be 1 or more.")
        if self.no_predictor and self.no_encoder:
            raise ConfigError("no_predictor and no_encoder together leave no tokens.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SurpriseConfig:
    """Running baseline of a stream's surprise, and when surprise becomes an episode.

    The thresholds are for noise: calibrate them on your scenes once the model is trained.
    """

    history: int = 64
    """Values kept for median and spread; they travel with every clip."""
    min_samples: int = 8
    """Values needed before a z-score is given."""
    min_spread: float = 0.01
    """Smallest spread assumed, as a share of the median: a scene that repeats itself exactly has
    none, and any change would be infinitely surprising."""
    enter_z: float = 6.0
    """An episode begins at this z-score. Normal noise around a full baseline reaches it less than
    once in 100 000 clips; while the baseline has its first few values about once in 200."""
    exit_z: float = 3.0
    """Below this z-score a clip of an episode is calm; at most `enter_z`."""
    calm_clips: int = 3
    """Calm clips in a row that end an episode, 1 to 100."""
    update_clips: int = 10
    """An open episode is told of at least every so many clips, 1 to 100, and when its peak rises
    by a quarter."""
    max_episode_s: float = 300.0
    """What has surprised for so long is the new normal: the episode ends, the baseline begins
    anew. Seconds of capture time."""

    def __post_init__(self) -> None:
        self._check_baseline()
        self._check_episodes()

    def _check_episodes(self) -> None:
        if not (math.isfinite(self.enter_z) and 0 < self.exit_z <= self.enter_z):
            raise ConfigError(
                f"exit_z is {self.exit_z} and enter_z {self.enter_z}; 0 < exit_z <= enter_z must "
                "hold, or an episode ends before it begins."
            )
        if not (1 <= self.calm_clips <= 100 and 1 <= self.update_clips <= 100):
            raise ConfigError(
                f"calm_clips is {self.calm_clips} and update_clips {self.update_clips}; "
                "both must be 1 to 100."
            )
        if not (math.isfinite(self.max_episode_s) and self.max_episode_s > 0):
            raise ConfigError(f"max_episode_s is {self.max_episode_s}; it must be above 0.")

    def _check_baseline(self) -> None:
        if not 2 <= self.min_samples <= self.history <= 64:
            raise ConfigError(
                f"min_samples is {self.min_samples} and history {self.history}; "
                "2 <= min_samples <= history <= 64 must hold."
            )
        if not (math.isfinite(self.min_spread) and self.min_spread > 0):
            raise ConfigError(f"min_spread is {self.min_spread}; it must be above 0.")


def plan_horizons(
    horizons_s: Sequence[float],
    *,
    mode: RolloutMode,
    frames: int,
    fps: float,
    tubelet: int,
    trained_frames: int,
    context: int | None = None,
) -> tuple[float, ...]:
    """Horizons asked for -> horizons given: rounded up to whole steps, ascending, each once.

    Planning what was planned changes nothing.

    Args:
        horizons_s: seconds after the last frame, 1 to 64 values above 0.
        mode: `contiguous` reaches as far as its context is long; `gap` as far as the clip.
        frames: per clip.
        fps: of the clip.
        tubelet: frames per tubelet of the model.
        trained_frames: frames per clip that the model was trained on.
        context: `RolloutConfig.context_tubelets`.

    Raises:
        ConfigError: no horizons, too many, or one that is not a positive number.
        HorizonUnreachable: with the largest horizon that can be reached.
    """
    _check_horizons(horizons_s)
    largest = frames // tubelet
    if mode == "contiguous":
        largest = context_tubelets(largest, trained=trained_frames // tubelet, wanted=context)
    steps = sorted({horizon_step(each, fps=fps, tubelet=tubelet) for each in horizons_s})
    if steps[-1] > largest:
        largest_s = horizon_of(largest, fps=fps, tubelet=tubelet)
        raise HorizonUnreachable(
            f"A horizon of {max(horizons_s):g} s is out of reach for clips of {frames} frames at "
            f"{fps:g} fps in {mode} mode; the largest is {largest_s:g} s.",
            largest_s,
        )
    return tuple(horizon_of(step, fps=fps, tubelet=tubelet) for step in steps)


def _check_horizons(horizons_s: Sequence[float]) -> None:
    if not 1 <= len(horizons_s) <= _MAX_HORIZONS:
        raise ConfigError(
            f"{len(horizons_s)} horizons were asked for; between 1 and {_MAX_HORIZONS} can be."
        )
    for each in horizons_s:
        if not (math.isfinite(each) and each > 0):
            raise ConfigError(f"A horizon of {each} s was asked for; it must be above 0.")


def context_tubelets(clip: int, *, trained: int, wanted: int | None = None) -> int:
    """Tubelets of context in contiguous mode, of a clip of `clip` tubelets."""
    return max(1, min(clip, trained - 1 if wanted is None else wanted))


def horizon_step(horizon_s: float, *, fps: float, tubelet: int) -> int:
    """The first step that ends at or after a horizon, from 1."""
    return max(1, math.ceil(horizon_s * fps / tubelet - _STEP_SLACK))


def horizon_of(step: int, *, fps: float, tubelet: int) -> float:
    """End of step k, seconds after the last frame, to the microsecond."""
    return round(step * tubelet / fps, 6)


def future_offsets_s(step: int, *, fps: float, tubelet: int) -> tuple[float, float]:
    """First and last frame of step k, seconds after the last frame seen.

    In gap mode a gap of s tubelets predicts step s + 1.
    """
    return ((step - 1) * tubelet + 1) / fps, step * tubelet / fps


def gap_steps(anticipation_s: float, *, fps: float, tubelet: int) -> int:
    """Tubelets left out between clip and target for an anticipation time, truncated towards zero.

    Source: vjepa2 evals/action_anticipation_frozen/modelcustom/vit_encoder_predictor_concat_ar.py
        ::AnticipativeWrapper.forward (c2963a4), identical.
    """
    return int(anticipation_s * fps / tubelet)
