"""How clips become latents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamer.errors import ConfigError

__all__ = ["EncoderConfig"]


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
