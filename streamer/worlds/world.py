"""What a world is: pictures with known truth, a pure function of name, seed, size and time.

Places are in the unit square (x to the right, y down), speeds in sides per second, radii in
parts of the shorter side, so that the truth does not depend on the size of the picture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from streamer.errors import ConfigError
from streamer.records import Pixels

__all__ = ["Body", "Stage", "Truth", "World"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Size and rate of the pictures."""

    height: int = 96
    width: int = 96
    """Pixels."""
    fps: float = 15.0
    """Pictures per second."""

    def __post_init__(self) -> None:
        for name, value in (("height", self.height), ("width", self.width)):
            if not 16 <= value <= 4096:
                raise ConfigError(f"{name} is {value}; a world is 16 to 4096 pixels per side.")
        if not (math.isfinite(self.fps) and 0 < self.fps <= 240):
            raise ConfigError(f"fps is {self.fps}; a world has above 0 and up to 240 pictures/s.")

    @property
    def short(self) -> int:
        """The shorter side, pixels."""
        return min(self.height, self.width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """One moving disc."""

    x: float
    y: float
    """Centre, in sides."""
    vx: float
    vy: float
    """Velocity, sides per second."""
    radius: float
    """Parts of the shorter side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is really there at one time."""

    time_s: float
    bodies: tuple[Body, ...] = ()
    is_in_zone: bool | None = None
    """A body's centre is inside the marked zone; None: this world has no zone."""
    is_lamp_on: bool | None = None
    """None: this world has no lamp."""


class World(Protocol):
    """A synthetic scene. Any picture can be made without the ones before it."""

    @property
    def stage(self) -> Stage:
        """Size and rate."""

    def truth(self, i: int) -> Truth:
        """What is there in picture `i`, at ``i / fps`` seconds. `i` may be negative."""

    def render(self, i: int) -> Pixels:
        """Picture `i`: uint8 `[H, W, 3]` RGB, freshly allocated."""
