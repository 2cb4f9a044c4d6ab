"""Source rate -> model rate, by the pictures' own times. Sans-I/O: decides before conversion.

The grid has a tick every ``1 / fps`` seconds from the first picture of a generation on. Each tick
takes the first picture at or after it; declared frame rates are never believed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from streamer.frames.config import SamplerConfig
from streamer.frames.rate import RateMeter
from streamer.frames.timeline import Timeline
from streamer.records import Picture

__all__ = ["Pick", "Sampler", "SamplerCounts"]

# Containers round times to a millisecond: so much too early is still "at" the tick.
_ROUNDING_S = 0.002
# A source at about the grid's own rate jitters around the ticks. Without this slack it would lose
# one picture and repeat another on every other tick.
_JITTER_TICKS = 0.1
_JITTER_BELOW = 1.5
_DEGRADED_BELOW = 0.95
_DEGRADED_AFTER_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """This picture belongs on the grid."""

    tick: int
    """Where, from 0 in each generation."""
    fill: int
    """So many ticks right before it had no picture: repeat the frame before."""
    generation: int
    """From 0, +1 whenever the line of time broke."""
    pts_s: float
    """Time on the source's clock, seconds; since the timeline's start if the source gave none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerCounts:
    """Fates so far. `used + sampled_out + dropped` is the number of pictures seen."""

    used: int = 0
    sampled_out: int = 0
    """Came between two ticks: not lost, not needed."""
    filled: int = 0
    """Ticks without a picture, bridged by repetition."""
    dropped: int = 0
    """Strays with an impossible time, and pictures that could not be converted."""


class Sampler:
    """Says of each picture whether it is converted and where it belongs.

    A step back of at most half a tick is tolerated; a single picture outside of that or more than
    `outlier_s` ahead is dropped, several in a row start a new generation, as does a hole longer
    than `fill_limit_s` and every new generation of the source.
    """

    def __init__(self, config: SamplerConfig) -> None:
        self._config = config
        self._timeline = Timeline(
            back_s=config.tick_s / 2,
            ahead_s=config.outlier_s,
            strays=config.strays_for_new_timeline,
        )
        self._rate = RateMeter(span_s=config.rate_span_s)
        self._source_generation: int | None = None
        self._generation = -1
        self._origin_s = 0.0
        self._last_tick = -1
        self._counts = SamplerCounts()

    @property
    def counts(self) -> SamplerCounts:
        """Fates of all pictures so far."""
        return self._counts

    @property
    def source_fps(self) -> float | None:
        """True rate of the source, counted over the newest seconds; None before two pictures."""
        return self._rate.fps

    @property
    def is_degraded(self) -> bool:
        """The source delivers fewer pictures per second than the grid has ticks."""
        fps = self._rate.fps
        if fps is None or self._rate.span_s < _DEGRADED_AFTER_S:
            return False
        return fps < _DEGRADED_BELOW * self._config.fps

    def restart(self) -> None:
        """Start a new generation with the next picture (its shape changed, for example)."""
        self._source_generation = None

    def push(self, picture: Picture) -> Pick | None:
        """Decide on one picture.

        Args:
            picture: in the order of the source.

        Returns:
            Its place on the grid, or None if it is not needed (`counts` says why).
        """
        if picture.generation != self._source_generation:
            self._source_generation = picture.generation
            self._timeline.restart()
            self._begin(origin_s=0.0)
        # The arrival of a file's pictures says how fast we read, not when they were taken.
        arrived_s = None if picture.clock == "file" else picture.arrived_ns / 1e9
        place = self._timeline.place(picture.pts_s, arrived_s=arrived_s)
        if place is None:
            self._counts = replace(self._counts, dropped=self._counts.dropped + 1)
            return None
        if place.is_new_timeline:
            self._begin(origin_s=0.0)
        self._rate.add(place.time_s)
        pts_s = picture.pts_s
        if pts_s is None or not math.isfinite(pts_s):
            pts_s = place.time_s
        return self._pick(place.time_s, pts_s=pts_s)

    def discard(self, *, is_bridged: bool) -> None:
        """The picture of the last pick could not be converted: it counts as dropped.

        Args:
            is_bridged: the frame before stands in for it.
        """
        counts = self._counts
        self._counts = replace(
            counts,
            used=counts.used - 1,
            dropped=counts.dropped + 1,
            filled=counts.filled + is_bridged,
        )

    def _begin(self, *, origin_s: float) -> None:
        self._generation += 1
        self._origin_s = origin_s
        self._last_tick = -1
        self._rate.restart()

    def _pick(self, time_s: float, *, pts_s: float) -> Pick | None:
        tick = self._tick(time_s)
        if tick <= self._last_tick:
            self._counts = replace(self._counts, sampled_out=self._counts.sampled_out + 1)
            return None
        fill = tick - self._last_tick - 1
        if fill > self._config.max_fill:
            self._begin(origin_s=time_s)
            tick, fill = 0, 0
        self._last_tick = tick
        counts = self._counts
        self._counts = replace(counts, used=counts.used + 1, filled=counts.filled + fill)
        return Pick(tick=tick, fill=fill, generation=self._generation, pts_s=pts_s)

    def _tick(self, time_s: float) -> int:
        slack = _ROUNDING_S * self._config.fps
        fps = self._rate.fps
        if fps is not None and fps < _JITTER_BELOW * self._config.fps:
            slack = max(slack, _JITTER_TICKS)
        return math.floor((time_s - self._origin_s) * self._config.fps + min(slack, 0.25))
