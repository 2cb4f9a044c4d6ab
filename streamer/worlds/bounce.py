"""`bounce`: balls between four walls, each on its own (they pass through each other)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from streamer.records import Pixels
from streamer.worlds.drawing import Color, draw_disc, floor, to_pixels
from streamer.worlds.motion import bounce
from streamer.worlds.world import Body, Stage, Truth

__all__ = ["Bounce"]

_COLORS: tuple[Color, ...] = ((0.95, 0.25, 0.2), (0.2, 0.85, 0.3), (0.25, 0.45, 0.95))
_RADIUS = 0.09
# Slow against a 16-pixel patch: about a quarter of it per tubelet at 64 pixels and 4 fps.
_SPEED = (0.05, 0.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ball:
    start: Body
    color: Color


class Bounce:
    """One to three balls in elastic motion."""

    def __init__(self, *, seed: int, stage: Stage) -> None:
        self.stage = stage
        rng = np.random.default_rng([seed, 1])
        self._floor = floor(stage, seed=seed)
        self._balls = tuple(_throw(rng, color) for color in _COLORS[: rng.integers(1, 4)])
        self._wall_x = _RADIUS * stage.short / stage.width
        self._wall_y = _RADIUS * stage.short / stage.height

    def truth(self, i: int) -> Truth:
        """See `World.truth`; one body per ball, always in the same order."""
        time_s = i / self.stage.fps
        return Truth(time_s=time_s, bodies=tuple(self._at(b.start, time_s) for b in self._balls))

    def render(self, i: int) -> Pixels:
        """See `World.render`."""
        canvas = self._floor.copy()
        for body, ball in zip(self.truth(i).bodies, self._balls, strict=True):
            draw_disc(canvas, x=body.x, y=body.y, radius=body.radius, color=ball.color)
        return to_pixels(canvas)

    def _at(self, start: Body, time_s: float) -> Body:
        wall_x, wall_y = self._wall_x, self._wall_y
        x, vx = bounce(start.x, speed=start.vx, time_s=time_s, low=wall_x, high=1 - wall_x)
        y, vy = bounce(start.y, speed=start.vy, time_s=time_s, low=wall_y, high=1 - wall_y)
        return Body(x=x, y=y, vx=vx, vy=vy, radius=start.radius)


def _throw(rng: np.random.Generator, color: Color) -> _Ball:
    x, y = rng.uniform(_RADIUS, 1 - _RADIUS, size=2).tolist()
    speed, angle = rng.uniform(*_SPEED), rng.uniform(0.0, 2 * math.pi)
    vx, vy = float(speed * math.cos(angle)), float(speed * math.sin(angle))
    return _Ball(start=Body(x=x, y=y, vx=vx, vy=vy, radius=_RADIUS), color=color)
