"""How frames become clips."""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamer.errors import ConfigError

__all__ = ["ClipConfig", "check_frames"]

_MOST_FRAMES = 64
"""Frames per clip that any model may be asked for, also one that was built for fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipConfig:
    """Window and stride."""

    frames: int = 64
    """Frames per clip."""
    fps: float = 4.0
    """Rate of the sampling grid, frames per second."""
    stride_s: float = 1.0
    """Seconds between the starts of consecutive clips."""
    tubelet: int = 2
    """Frames per tubelet of the model: windows and strides are whole tubelets."""
    bridge_limit_s: float = 2.0
    """Longest run of lost frames bridged by repetition, seconds; after a longer one the window
    fills anew."""

    def __post_init__(self) -> None:
        if self.tubelet < 1:
            raise ConfigError(f"tubelet is {self.tubelet}; it must be 1 or more.")
        if self.frames < 1 or self.frames % self.tubelet:
            raise ConfigError(
                f"frames is {self.frames}; a clip holds a positive multiple of the model's tubelet"
                f" ({self.tubelet} frames)."
            )
        if not (math.isfinite(self.fps) and self.fps > 0):
            raise ConfigError(f"fps is {self.fps}; it must be above 0.")
        if not (math.isfinite(self.bridge_limit_s) and self.bridge_limit_s >= 0):
            raise ConfigError(f"bridge_limit_s is {self.bridge_limit_s}; it must be 0 or more.")
        self._check_stride()

    def _check_stride(self) -> None:
        step_s = self.tubelet / self.fps
        ticks = self.stride_s * self.fps
        is_whole = math.isfinite(ticks) and math.isclose(ticks, round(ticks), abs_tol=1e-6)
        if not is_whole or round(ticks) < 1 or round(ticks) % self.tubelet:
            raise ConfigError(
                f"stride_s is {self.stride_s} at {self.fps:g} fps; stride x fps must be a positive"
                f" multiple of the model's tubelet ({self.tubelet}), so choose a multiple of"
                f" {step_s:g} s."
            )

    @property
    def stride_ticks(self) -> int:
        """Ticks of the sampling grid between consecutive clips."""
        return round(self.stride_s * self.fps)

    @property
    def bridge_ticks(self) -> int:
        """Most lost ticks in a row that are bridged."""
        return math.floor(self.bridge_limit_s * self.fps + 1e-9)


def check_frames(frames: int, *, trained_frames: int) -> None:
    """A clip far longer than the model knows would fill the memory before it failed.

    Raises:
        ConfigError: more frames than the model was built for, and more than 64.
    """
    most = max(_MOST_FRAMES, trained_frames)
    if frames > most:
        raise ConfigError(
            f"frames is {frames}; the model was built for clips of {trained_frames}, so choose at"
            f" most {most}."
        )
