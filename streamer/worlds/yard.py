"""`yard`: a fixed camera over a yard with a pillar, a lamp, a painted zone and rolling balls.

The world of the demo model. Everything that can be asked of a live camera is in it: where things
go, when one enters the zone, what a thing does while it is hidden, when the lamp changes, and what
cannot be (see `Mishap`). Light drifts and every picture has noise of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from streamer.errors import ConfigError
from streamer.records import Pixels
from streamer.worlds.drawing import (
    Canvas,
    Color,
    draw_disc,
    draw_frame,
    draw_rectangle,
    to_pixels,
)
from streamer.worlds.motion import bounce
from streamer.worlds.world import Body, Stage, Truth

__all__ = ["MISHAPS", "Mishap", "MishapKind", "Yard", "YardConfig"]

MishapKind = Literal["teleport", "vanish", "recolour", "reverse", "freeze"]
MISHAPS: tuple[MishapKind, ...] = ("teleport", "vanish", "recolour", "reverse", "freeze")

_COLORS: tuple[Color, ...] = ((0.95, 0.25, 0.2), (0.2, 0.85, 0.3))
_ON: Color = (0.1, 0.95, 0.25)
_OFF: Color = (0.95, 0.1, 0.1)
_MARK: Color = (0.5, 0.47, 0.25)
_RADIUS = 6 / 64
_PILLAR = (20 / 64, 29 / 64)
"""Left and right edge; things pass behind it."""
_TELEPORT = 26 / 64
_FIELDS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class YardConfig:
    """What the seed draws from. Speeds in sides per second, times in seconds."""

    speed: tuple[float, float] = (0.05, 0.2)
    """Slow against a 16-pixel patch: a tenth to half of one per tubelet at 64 pixels and 4 fps."""
    second_ball: float = 0.3
    """Probability of a second ball."""
    lamp_period_s: tuple[float, float] = (2.0, 5.0)
    light: tuple[float, float] = (0.95, 1.05)
    light_drift: float = 0.002
    """Largest change of the light, per second."""
    noise: tuple[float, float] = (0.005, 0.015)
    """Standard deviation of the noise of a pixel."""

    def __post_init__(self) -> None:
        for name in ("speed", "lamp_period_s", "light", "noise"):
            low, high = getattr(self, name)
            if not 0 <= low <= high:
                raise ConfigError(f"{name} is {low}..{high}; write two numbers, the smaller first.")
        if not 0 <= self.second_ball <= 1:
            raise ConfigError(f"second_ball is {self.second_ball}; it is a probability.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """Something that cannot happen, to the first ball."""

    kind: MishapKind
    time_s: float
    """When it begins; the world is ordinary before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ball:
    start: Body
    color: Color
    since_s: float = 0.0
    is_there: bool = True


class Yard:
    """One or two balls in elastic motion; they pass through each other.

    The scene is the same for every seed; balls, lamp, light and noise are the seed's.
    """

    zone_corner = (40 / 64, 40 / 64)
    zone_size = (24 / 64, 24 / 64)

    def __init__(
        self,
        *,
        seed: int,
        stage: Stage,
        config: YardConfig | None = None,
        mishap: Mishap | None = None,
    ) -> None:
        self.stage = stage
        config = config or YardConfig()
        rng = np.random.default_rng([seed, 5])
        self._seed = seed
        self._balls = tuple(_throw(rng, config))
        self.lamp_period_s = float(rng.uniform(*config.lamp_period_s))
        self._lamp_phase_s = float(rng.uniform(0.0, self.lamp_period_s))
        self._light = float(rng.uniform(*config.light))
        self._light_drift = float(rng.uniform(-config.light_drift, config.light_drift))
        self._noise = float(rng.uniform(*config.noise))
        self._angle = float(rng.uniform(0.0, 2 * math.pi))
        self._mishap = mishap
        self._wall = (_RADIUS * stage.short / stage.width, _RADIUS * stage.short / stage.height)

    def truth(self, i: int) -> Truth:
        """See `World.truth`; in the zone means that the first ball's centre is. A ball that
        vanished is not among the bodies."""
        time_s = i / self.stage.fps
        balls = self._balls_at(time_s)
        bodies = tuple(self._at(ball, time_s) for ball in balls if ball.is_there)
        return Truth(
            time_s=time_s,
            bodies=bodies,
            is_in_zone=balls[0].is_there and self._holds(bodies[0]),
            is_lamp_on=self._is_lamp_on(time_s),
        )

    def render(self, i: int) -> Pixels:
        """See `World.render`."""
        time_s = i / self.stage.fps
        canvas = _floor(self.stage.height, self.stage.width).copy()
        for ball in self._balls_at(time_s):
            if ball.is_there:
                body = self._at(ball, time_s)
                draw_disc(canvas, x=body.x, y=body.y, radius=body.radius, color=ball.color)
        _draw_pillar(canvas)
        lamp = _ON if self._is_lamp_on(time_s) else _OFF
        draw_rectangle(canvas, x=2 / 64, y=2 / 64, width=8 / 64, height=8 / 64, color=lamp)
        canvas *= np.float32(self._light_at(time_s))
        fields = _noise_fields(self.stage.height, self.stage.width)
        canvas += np.float32(self._noise) * fields[(self._seed * 31 + i * 17) % _FIELDS]
        return to_pixels(canvas)

    def _balls_at(self, time_s: float) -> tuple[_Ball, ...]:
        mishap = self._mishap
        if mishap is None or time_s < mishap.time_s:
            return self._balls
        return (self._after(self._balls[0], mishap), *self._balls[1:])

    def _after(self, ball: _Ball, mishap: Mishap) -> _Ball:
        body = self._at(ball, mishap.time_s)
        if mishap.kind == "vanish":
            return replace(ball, is_there=False)
        if mishap.kind == "recolour":
            red, green, blue = ball.color
            return replace(ball, color=(1 - red, 1 - green, 1 - blue))
        if mishap.kind == "reverse":
            body = replace(body, vx=-body.vx, vy=-body.vy)
        elif mishap.kind == "freeze":
            body = replace(body, vx=0.0, vy=0.0)
        else:
            body = replace(body, x=self._beside(body.x, 0), y=self._beside(body.y, 1))
        return replace(ball, start=body, since_s=mishap.time_s)

    def _beside(self, place: float, axis: int) -> float:
        """A place a jump away, inside the walls."""
        wall = self._wall[axis]
        step = _TELEPORT * (math.cos(self._angle) if axis == 0 else math.sin(self._angle))
        span = 1 - 2 * wall
        moved = (place - wall + step) % (2 * span)
        return wall + (moved if moved < span else 2 * span - moved)

    def _at(self, ball: _Ball, time_s: float) -> Body:
        start, (wall_x, wall_y) = ball.start, self._wall
        since = time_s - ball.since_s
        x, vx = bounce(start.x, speed=start.vx, time_s=since, low=wall_x, high=1 - wall_x)
        y, vy = bounce(start.y, speed=start.vy, time_s=since, low=wall_y, high=1 - wall_y)
        return Body(x=x, y=y, vx=vx, vy=vy, radius=start.radius)

    def _holds(self, body: Body) -> bool:
        (x, y), (width, height) = self.zone_corner, self.zone_size
        return x <= body.x <= x + width and y <= body.y <= y + height

    def _is_lamp_on(self, time_s: float) -> bool:
        return (time_s + self._lamp_phase_s) % self.lamp_period_s < self.lamp_period_s / 2

    def _light_at(self, time_s: float) -> float:
        """To and fro, so that a camera that runs for days neither fades nor burns out."""
        swing, _ = bounce(0.0, speed=self._light_drift, time_s=time_s, low=-0.05, high=0.05)
        return self._light + swing


def _throw(rng: np.random.Generator, config: YardConfig) -> Iterator[_Ball]:
    count = 1 + int(rng.random() < config.second_ball)
    for color in _COLORS[:count]:
        x, y = rng.uniform(_RADIUS, 1 - _RADIUS, size=2).tolist()
        speed, angle = rng.uniform(*config.speed), rng.uniform(0.0, 2 * math.pi)
        vx, vy = float(speed * math.cos(angle)), float(speed * math.sin(angle))
        yield _Ball(start=Body(x=x, y=y, vx=vx, vy=vy, radius=_RADIUS), color=color)


@lru_cache(maxsize=8)
def _floor(height: int, width: int) -> Canvas:
    canvas = np.full((height, width, 3), 0.35, dtype=np.float32)
    (x, y), (wide, high) = Yard.zone_corner, Yard.zone_size
    draw_frame(canvas, x=x, y=y, width=wide, height=high, color=_MARK)
    return canvas


@lru_cache(maxsize=8)
def _noise_fields(height: int, width: int) -> NDArray[np.float32]:
    """Normal deviates `[64, H, W, 3]`, the same for every yard of this size."""
    rng = np.random.default_rng([height, width, 9])
    return rng.standard_normal((_FIELDS, height, width, 3), dtype=np.float32)


def _draw_pillar(canvas: Canvas) -> None:
    height, width = canvas.shape[:2]
    left, right = round(_PILLAR[0] * width), round(_PILLAR[1] * width)
    rows = np.arange(height, dtype=np.float32) * np.float32(64 / height)
    stripes = np.float32(0.55) + np.float32(0.12) * np.sin(rows / np.float32(3.0))
    tint = np.array((0.62, 0.55, 0.48), dtype=np.float32) / np.float32(0.55)
    canvas[:, left:right] = (stripes[:, None] * tint)[:, None, :]
