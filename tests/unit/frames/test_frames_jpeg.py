"""JPEGs as Pillow reads them, and the bound on their size."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from streamer.frames.jpeg import JpegEncoder
from streamer.worlds.registry import make_world
from streamer.worlds.world import Stage

pytestmark = pytest.mark.unit

MAX_BYTES = 32_768
NOISE = np.random.default_rng(0).integers(0, 256, (256, 256, 3), dtype=np.uint8)


def world() -> np.ndarray:
    return make_world("bounce", seed=1, stage=Stage(height=256, width=256)).render(5)


def read(body: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(body)) as image:
        assert image.format == "JPEG"
        return np.asarray(image.convert("RGB"))


def test_the_picture_is_that_of_the_frame() -> None:
    pixels = world()
    found = read(JpegEncoder(max_bytes=MAX_BYTES).encode(pixels))
    assert found.shape == pixels.shape
    assert np.abs(found.astype(int) - pixels).mean() < 2.5
    assert np.abs(found.mean(axis=(0, 1)) - pixels.mean(axis=(0, 1))).max() < 2


def test_black_stays_black_and_white_white() -> None:
    halves = np.zeros((64, 64, 3), dtype=np.uint8)
    halves[:, 32:] = 255
    found = read(JpegEncoder(max_bytes=MAX_BYTES).encode(halves))
    assert found[:, :30].max() <= 3
    assert found[:, 34:].min() >= 252


@pytest.mark.parametrize("side", [16, 256, 384])
def test_quality_gives_way_to_the_bound(side: int) -> None:
    noise = np.resize(NOISE, (side, side, 3))
    body = JpegEncoder(max_bytes=MAX_BYTES).encode(noise)
    assert body is not None and len(body) <= MAX_BYTES
    assert read(body).shape == noise.shape


def test_quality_comes_back_step_by_step() -> None:
    encoder = JpegEncoder(max_bytes=MAX_BYTES)
    best = encoder.encode(world())
    encoder.encode(NOISE)
    sizes = [len(encoder.encode(world())) for _ in range(6)]
    assert sizes[0] < sizes[-1] == len(best)
    assert sizes == sorted(sizes)


def test_what_cannot_fit_is_none() -> None:
    assert JpegEncoder(max_bytes=2000).encode(NOISE) is None


def test_nothing_is_told_of_the_machine() -> None:
    body = JpegEncoder(max_bytes=MAX_BYTES).encode(world())
    assert body is not None and b"Lavc" not in body
