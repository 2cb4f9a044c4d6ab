"""PNGs as Pillow reads them."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from streamer.gateway.png import encode_png, encode_strip

pytestmark = pytest.mark.unit


def panel(seed: int, *, rows: int = 4, columns: int = 5) -> np.ndarray:
    shape = (rows, columns, 3)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def read(png: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(png)) as image:
        assert (image.format, image.mode) == ("PNG", "RGB")
        image.load()
        return np.asarray(image)


@pytest.mark.parametrize("scale", [1, 2, 7])
def test_each_pixel_becomes_a_square(scale: int) -> None:
    pixels = panel(0)
    png = encode_png(pixels.tobytes(), rows=4, columns=5, scale=scale)
    expected = pixels.repeat(scale, axis=0).repeat(scale, axis=1)
    assert np.array_equal(read(png), expected)


def test_panels_stand_side_by_side_with_white_lines_between() -> None:
    one, other = panel(1), panel(2)
    png = encode_strip([one.tobytes(), other.tobytes()], rows=4, columns=5, scale=2, rule=3)
    found = read(png)
    assert found.shape == (8, 23, 3)
    assert np.array_equal(found[::2, :10:2], one)
    assert np.array_equal(found[::2, 13::2], other)
    assert (found[:, 10:13] == 255).all()


def test_large_cells_cost_few_bytes() -> None:
    pixels = panel(3, rows=16, columns=16).tobytes()
    assert len(encode_png(pixels, rows=16, columns=16, scale=16)) < 8000
