"""Anti-aliased shapes on a float canvas `[H, W, 3]` in 0..1."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamer.records import Pixels
from streamer.worlds.world import Stage

__all__ = ["Canvas", "Color", "draw_disc", "draw_frame", "draw_rectangle", "floor", "to_pixels"]

Canvas = NDArray[np.float32]
Color = tuple[float, float, float]


def floor(stage: Stage, *, seed: int) -> Canvas:
    """A grey floor with a faint texture that belongs to the seed: the fixed camera's background."""
    rng = np.random.default_rng([seed, 7])
    y = np.linspace(0.0, 1.0, stage.height, dtype=np.float32)[:, None]
    x = np.linspace(0.0, 1.0, stage.width, dtype=np.float32)[None, :]
    light = np.full((stage.height, stage.width), 0.35, dtype=np.float32)
    for _ in range(3):
        fx, fy, phase = rng.uniform((1.0, 1.0, 0.0), (5.0, 5.0, 6.28))
        light += np.float32(0.02) * np.sin(6.28 * (fx * x + fy * y) + phase).astype(np.float32)
    return np.repeat(light[:, :, None], 3, axis=2)


def draw_disc(canvas: Canvas, *, x: float, y: float, radius: float, color: Color) -> None:
    """Blend a disc in; centre in sides, radius in parts of the shorter side.

    The edge is one pixel wide: ``alpha = clip((r^2 - d^2) / 2r + 0.5)``.
    """
    height, width = canvas.shape[:2]
    r = max(radius * min(height, width), 0.5)
    cx, cy = x * width - 0.5, y * height - 0.5
    top, bottom = max(0, math.floor(cy - r - 1)), min(height, math.ceil(cy + r + 2))
    left, right = max(0, math.floor(cx - r - 1)), min(width, math.ceil(cx + r + 2))
    if top >= bottom or left >= right:
        return
    dy = np.arange(top, bottom, dtype=np.float32)[:, None] - np.float32(cy)
    dx = np.arange(left, right, dtype=np.float32)[None, :] - np.float32(cx)
    alpha = np.clip((r * r - dx * dx - dy * dy) / (2 * r) + 0.5, 0.0, 1.0)[:, :, None]
    patch = canvas[top:bottom, left:right]
    patch += alpha * (np.asarray(color, dtype=np.float32) - patch)


def draw_rectangle(
    canvas: Canvas, *, x: float, y: float, width: float, height: float, color: Color
) -> None:
    """Fill a rectangle; corner and size in sides, edges on whole pixels."""
    rows, columns = canvas.shape[:2]
    top, bottom = round(y * rows), round((y + height) * rows)
    left, right = round(x * columns), round((x + width) * columns)
    canvas[top:bottom, left:right] = color


def draw_frame(
    canvas: Canvas, *, x: float, y: float, width: float, height: float, color: Color
) -> None:
    """Outline a rectangle, one fiftieth of the shorter side thick."""
    line = max(1, min(canvas.shape[:2]) // 50)
    thick_x, thick_y = line / canvas.shape[1], line / canvas.shape[0]
    draw_rectangle(canvas, x=x, y=y, width=width, height=thick_y, color=color)
    draw_rectangle(canvas, x=x, y=y + height - thick_y, width=width, height=thick_y, color=color)
    draw_rectangle(canvas, x=x, y=y, width=thick_x, height=height, color=color)
    draw_rectangle(canvas, x=x + width - thick_x, y=y, width=thick_x, height=height, color=color)


def to_pixels(canvas: Canvas) -> Pixels:
    """Round a canvas to uint8 `[H, W, 3]` RGB."""
    return (np.clip(canvas, 0.0, 1.0) * np.float32(255.0) + np.float32(0.5)).astype(np.uint8)
