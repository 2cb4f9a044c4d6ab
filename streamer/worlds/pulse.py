"""`pulse`: a lamp that is green for half of its period and red for the other half."""

from __future__ import annotations

import numpy as np

from streamer.records import Pixels
from streamer.worlds.drawing import Color, draw_disc, floor, to_pixels
from streamer.worlds.world import Stage, Truth

__all__ = ["Pulse"]

_ON: Color = (0.1, 0.95, 0.25)
_OFF: Color = (0.95, 0.1, 0.1)
_RADIUS = 0.2


class Pulse:
    """A square wave of 2 to 5 seconds with a random phase, both given by the seed."""

    def __init__(self, *, seed: int, stage: Stage) -> None:
        self.stage = stage
        rng = np.random.default_rng([seed, 3])
        self.period_s = float(rng.uniform(2.0, 5.0))
        self._phase_s = float(rng.uniform(0.0, self.period_s))
        self._floor = floor(stage, seed=seed)

    def truth(self, i: int) -> Truth:
        """See `World.truth`; no bodies, only the lamp."""
        time_s = i / self.stage.fps
        is_on = (time_s + self._phase_s) % self.period_s < self.period_s / 2
        return Truth(time_s=time_s, is_lamp_on=is_on)

    def render(self, i: int) -> Pixels:
        """See `World.render`."""
        canvas = self._floor.copy()
        color = _ON if self.truth(i).is_lamp_on else _OFF
        draw_disc(canvas, x=0.5, y=0.5, radius=_RADIUS, color=color)
        return to_pixels(canvas)
