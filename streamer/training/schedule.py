"""Values that change from step to step: learning rate, weight decay, EMA momentum.

Each schedule is a pure function of the number of the call, counted from 1, so that resuming a
training needs no state beyond the step.

Source: vjepa2 src/utils/schedulers.py (c2963a4), identical values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from streamer.errors import ConfigError

__all__ = [
    "ConstantThenLinear",
    "EmaMomentum",
    "HalfCosine",
    "LinearCooldown",
    "Schedule",
    "WarmupCosine",
]


class Schedule(Protocol):
    """The value of the i-th call, i from 1."""

    def __call__(self, i: int) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupCosine:
    """Linear from `start` to `peak` over `warmup` calls, then a half cosine down to `final`."""

    start: float
    peak: float
    final: float
    warmup: int
    total: int

    def __post_init__(self) -> None:
        _check_span(self.warmup, self.total)

    def __call__(self, i: int) -> float:
        if i < self.warmup:
            return self.start + i / self.warmup * (self.peak - self.start)
        progress = (i - self.warmup) / max(1, self.total - self.warmup)
        cosine = 0.5 * (1.0 + math.cos(math.pi * progress))
        return max(self.final, self.final + (self.peak - self.final) * cosine)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearCooldown:
    """Straight from `start` to `final` over `total` calls, and on along that line after them."""

    start: float
    final: float
    total: int

    def __post_init__(self) -> None:
        _check_span(0, self.total)

    def __call__(self, i: int) -> float:
        return self.start + i / self.total * (self.final - self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantThenLinear:
    """Linear warm-up, flat, linear decay over the last `decay` calls (known as WSD)."""

    start: float
    peak: float
    final: float
    warmup: int
    decay: int
    total: int

    def __post_init__(self) -> None:
        _check_span(self.warmup + self.decay, self.total)

    def __call__(self, i: int) -> float:
        flat_until = self.total - self.decay
        if i < self.warmup:
            return self.start + i / self.warmup * (self.peak - self.start)
        if i < flat_until:
            return self.peak
        return self.peak + (i - flat_until) / max(1, self.decay) * (self.final - self.peak)


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfCosine:
    """From `start` to `final` on a half cosine over `total` calls, then `final`. Weight decay."""

    start: float
    final: float
    total: int

    def __post_init__(self) -> None:
        _check_span(0, self.total)

    def __call__(self, i: int) -> float:
        cosine = 0.5 * (1.0 + math.cos(math.pi * i / self.total))
        value = self.final + (self.start - self.final) * cosine
        return max(self.final, value) if self.final <= self.start else min(self.final, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmaMomentum:
    """Straight from `start` to `final` over `total` calls; the first call gives `start`."""

    start: float
    final: float
    total: float

    def __call__(self, i: int) -> float:
        return self.start + (i - 1) * (self.final - self.start) / self.total


def _check_span(used: int, total: int) -> None:
    if total < 1 or not 0 <= used <= total:
        raise ConfigError(
            f"A schedule of {total} steps cannot spend {used} of them on warm-up and decay."
        )
