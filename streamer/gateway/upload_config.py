"""What callers may upload, and how much of everything that takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamer.errors import ConfigError

__all__ = ["UploadConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadConfig:
    """Bounds of `POST /v1/anticipations` and `POST /v1/latents`, per gateway process."""

    max_bytes: int = 256 * 1024 * 1024
    """Largest file."""
    max_concurrent: int = 2
    """Uploads received or worked on at once; one more is answered 429."""
    stall_s: float = 20.0
    """A sender that sends nothing, or a reader that takes nothing, for so long is given up."""
    min_bytes_per_s: float = 16_384.0
    """A sender may fall behind this rate by `stall_s` seconds, not more."""
    max_video_s: float = 3600.0
    """Longest video, seconds."""
    max_latent_bytes: int = 256 * 1024 * 1024
    """Largest answer with latents."""
    folder: str = ""
    """Where files wait while they are worked on; they have no names there and end with the process.
    Empty: the system's folder for temporary files."""

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_concurrent", "max_latent_bytes"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
        for name in ("stall_s", "min_bytes_per_s", "max_video_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(f"{name} is {value}; it must be above 0.")
