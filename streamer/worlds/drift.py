"""`drift`: one point with a constant velocity; it leaves at one side and is back at the other."""

from __future__ import annotations

import math

import numpy as np

from streamer.records import Pixels
from streamer.worlds.drawing import Color, draw_disc, floor, to_pixels
from streamer.worlds.motion import wrap
from streamer.worlds.world import Body, Stage, Truth

__all__ = ["Drift"]

_POINT: Color = (0.95, 0.95, 0.9)
_RADIUS = 0.05


class Drift:
    """Speed 0.05 to 0.2 sides per second in a direction that the seed gives."""

    def __init__(self, *, seed: int, stage: Stage) -> None:
        self.stage = stage
        rng = np.random.default_rng([seed, 4])
        self._x, self._y = rng.uniform(0.0, 1.0, size=2).tolist()
        speed, angle = rng.uniform(0.05, 0.2), rng.uniform(0.0, 2 * math.pi)
        self._vx, self._vy = float(speed * math.cos(angle)), float(speed * math.sin(angle))
        self._floor = floor(stage, seed=seed)

    def truth(self, i: int) -> Truth:
        """See `World.truth`; one body whose velocity never changes."""
        time_s = i / self.stage.fps
        x = wrap(self._x, speed=self._vx, time_s=time_s)
        y = wrap(self._y, speed=self._vy, time_s=time_s)
        body = Body(x=x, y=y, vx=self._vx, vy=self._vy, radius=_RADIUS)
        return Truth(time_s=time_s, bodies=(body,))

    def render(self, i: int) -> Pixels:
        """See `World.render`."""
        canvas = self._floor.copy()
        (body,) = self.truth(i).bodies
        for around_x in (-1.0, 0.0, 1.0):
            for around_y in (-1.0, 0.0, 1.0):
                x, y = body.x + around_x, body.y + around_y
                draw_disc(canvas, x=x, y=y, radius=body.radius, color=_POINT)
        return to_pixels(canvas)
