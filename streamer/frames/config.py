"""How pictures become frames."""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamer.errors import ConfigError

__all__ = ["PixelConfig", "SamplerConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerConfig:
    """The sampling grid and how forgiving it is."""

    fps: float = 4.0
    """Frames per second of the grid: what the model was trained on, not what the source has."""
    fill_limit_s: float = 2.0
    """Longest hole bridged by repeating a frame, seconds; a longer one starts a new generation."""
    outlier_s: float = 5.0
    """A picture whose time is further ahead than this is suspicious, seconds."""
    strays_for_new_timeline: int = 3
    """So many suspicious pictures in a row mean that the source's clock was set anew."""
    rate_span_s: float = 8.0
    """Span over which the true rate of the source is counted, seconds."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.fps) and 0 < self.fps <= 240):
            raise ConfigError(f"fps is {self.fps}; the sampling rate lies above 0 and up to 240.")
        if not (math.isfinite(self.fill_limit_s) and self.fill_limit_s >= 0):
            raise ConfigError(f"fill_limit_s is {self.fill_limit_s}; it must be 0 or more.")
        if not self.outlier_s > self.fill_limit_s:
            raise ConfigError(
                f"outlier_s is {self.outlier_s}; it must be above fill_limit_s"
                f" ({self.fill_limit_s})."
            )
        if self.strays_for_new_timeline < 1:
            raise ConfigError(
                f"strays_for_new_timeline is {self.strays_for_new_timeline}; it must be 1 or more."
            )
        if not (math.isfinite(self.rate_span_s) and self.rate_span_s > 0):
            raise ConfigError(f"rate_span_s is {self.rate_span_s}; it must be above 0.")

    @property
    def tick_s(self) -> float:
        """Seconds between two ticks."""
        return 1.0 / self.fps

    @property
    def max_fill(self) -> int:
        """Most ticks in a row that are bridged by repetition."""
        return math.floor(self.fill_limit_s * self.fps + 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class PixelConfig:
    """What a converted frame looks like."""

    crop: int = 256
    """Pixels per side of the square frame: the model's input size."""

    def __post_init__(self) -> None:
        if not 1 <= self.crop <= 4096:
            raise ConfigError(f"crop is {self.crop}; a frame has 1 to 4096 pixels per side.")

    @property
    def short_edge(self) -> int:
        """Short edge after resizing, before the centre crop, pixels.

        Source: vjepa2 evals/video_classification_frozen/utils.py::EvalVideoTransform
        (c2963a4): ``int(crop_size * 256 / 224)`` - identical.
        """
        return int(self.crop * 256 / 224)
