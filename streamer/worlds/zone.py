"""`zone`: a body walks to and fro and crosses a marked zone on its way."""

from __future__ import annotations

import numpy as np

from streamer.records import Pixels
from streamer.worlds.drawing import Color, draw_disc, draw_frame, floor, to_pixels
from streamer.worlds.motion import bounce
from streamer.worlds.world import Body, Stage, Truth

__all__ = ["Zone"]

_BODY: Color = (0.95, 0.6, 0.15)
_MARK: Color = (0.9, 0.85, 0.2)
_RADIUS = 0.08


class Zone:
    """The zone is a rectangle `zone_size` at `zone_corner`, in sides; its outline is painted."""

    zone_corner = (0.55, 0.3)
    zone_size = (0.3, 0.4)

    def __init__(self, *, seed: int, stage: Stage) -> None:
        self.stage = stage
        rng = np.random.default_rng([seed, 2])
        self._x = float(rng.uniform(0.1, 0.4))
        self._y = float(rng.uniform(0.4, 0.6))
        self._speed = float(rng.uniform(0.08, 0.2))
        self._wall = _RADIUS * stage.short / stage.width
        self._floor = floor(stage, seed=seed)
        (x, y), (width, height) = self.zone_corner, self.zone_size
        draw_frame(self._floor, x=x, y=y, width=width, height=height, color=_MARK)

    def truth(self, i: int) -> Truth:
        """See `World.truth`; one body, in the zone when its centre is."""
        time_s = i / self.stage.fps
        x, vx = bounce(
            self._x, speed=self._speed, time_s=time_s, low=self._wall, high=1 - self._wall
        )
        body = Body(x=x, y=self._y, vx=vx, vy=0.0, radius=_RADIUS)
        return Truth(time_s=time_s, bodies=(body,), is_in_zone=self._holds(body))

    def render(self, i: int) -> Pixels:
        """See `World.render`."""
        canvas = self._floor.copy()
        for body in self.truth(i).bodies:
            draw_disc(canvas, x=body.x, y=body.y, radius=body.radius, color=_BODY)
        return to_pixels(canvas)

    def _holds(self, body: Body) -> bool:
        (x, y), (width, height) = self.zone_corner, self.zone_size
        return x <= body.x <= x + width and y <= body.y <= y + height
