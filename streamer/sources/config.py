"""Limits of files and synthetic worlds, and the configs of all sources together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from streamer.errors import ConfigError
from streamer.sources.rtsp_config import RtspConfig

__all__ = ["FileConfig", "SourceConfig", "SyntheticConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileConfig:
    """What a video file may ask of us."""

    max_pixels: int = 3840 * 2160
    """Largest picture, width times height; larger ones are refused before they are decoded."""
    max_samples: int = 8_000_000
    """Most samples (pictures, pieces of sound) of an mp4 or mov file: a day at 30 per second. Each
    takes about 70 bytes of memory before the first picture is decoded."""

    def __post_init__(self) -> None:
        for name in ("max_pixels", "max_samples"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticConfig:
    """What a synthetic source does unless its URL says otherwise."""

    preroll_s: float = 16.0
    """Past shown at once at the start, seconds: one clip, so that the first anticipation needs no
    waiting."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.preroll_s) and 0 <= self.preroll_s <= 3600):
            raise ConfigError(f"preroll_s is {self.preroll_s}; it lies between 0 and 3600.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """One config per kind of source."""

    rtsp: RtspConfig = field(default_factory=RtspConfig)
    """Patience with RTSP cameras."""
    file: FileConfig = field(default_factory=FileConfig)
    """Limits of files."""
    synthetic: SyntheticConfig = field(default_factory=SyntheticConfig)
    """Synthetic worlds."""
