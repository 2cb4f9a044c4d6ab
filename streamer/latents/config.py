"""How clips become latents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamer.errors import ConfigError

__all__ = ["EncoderConfig", "PictureConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """How the encoder computes."""

    dtype: Literal["float32", "bfloat16"] = "float32"
    """What it computes in and gives; bfloat16 is autocast over float32 weights, with errors of some
    hundredths. On a CPU it pays only with bfloat16 instructions (avx512_bf16: about 1.3 times as
    fast). Without them torch falls back to reference kernels: measured ten times slower on AVX2."""

    def __post_init__(self) -> None:
        if self.dtype not in ("float32", "bfloat16"):
            raise ConfigError(f"dtype is {self.dtype!r}; we know float32 and bfloat16.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureConfig:
    """Latents shown as colours: what `/latent.png` and the feed's `latent.picture` are made of."""

    enabled: bool = True
    """Make one per clip, after its event is out. Off, no basis of colours is made at start either:
    that takes a model less than half as long as one clip."""
    ttl_s: float = 60.0
    """How long the store keeps a picture, seconds, up to 86400 (and at most `store.max_pictures` of
    a stream)."""
    max_bytes: int = 32_768
    """Largest picture, bytes, at least 4096; the furthest horizons are left out of a larger one."""
    max_waiting: int = 64
    """Pictures in the making at once; one more is left out and counted, as is that of a stream
    whose picture before is not done yet."""

    def __post_init__(self) -> None:
        if not 0 < self.ttl_s <= 86_400:
            raise ConfigError(f"ttl_s is {self.ttl_s}; it is above 0 and at most 86400.")
        if self.max_bytes < 4096:
            raise ConfigError(f"max_bytes is {self.max_bytes}; it is at least 4096.")
        if self.max_waiting < 1:
            raise ConfigError(f"max_waiting is {self.max_waiting}; it must be 1 or more.")
