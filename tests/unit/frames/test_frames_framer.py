"""Pictures to frames: repeats, shapes, failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamer.errors import SourceUnsupported
from streamer.frames.config import PixelConfig, SamplerConfig
from streamer.frames.framer import Framer
from streamer.frames.pixels import PixelConverter
from streamer.frames.sampler import Sampler
from streamer.records import Picture

pytestmark = pytest.mark.unit


def make() -> tuple[Framer, Sampler]:
    sampler = Sampler(SamplerConfig(fps=4.0))
    converter = PixelConverter(PixelConfig(crop=14))
    return Framer(stream="cam", fps=4.0, sampler=sampler, converter=converter), sampler


def picture(n: int, *, pts_s: float, image: Any = None, value: int = 0) -> Picture:
    return Picture(
        image=np.full((32, 32, 3), value, np.uint8) if image is None else image,
        pts_s=pts_s,
        captured_at_ns=10**18 + round(pts_s * 1e9),
        arrived_ns=n,
        clock="rtcp",
        generation=0,
        index=n,
        decode_ms=2.0,
    )


def test_frame_carries_the_facts_of_its_picture() -> None:
    framer, _ = make()
    (frame,) = framer.push(picture(5, pts_s=3.0, value=200))
    assert (frame.stream, frame.index, frame.tick, frame.clock) == ("cam", 5, 0, "rtcp")
    assert frame.captured_at_ns == 10**18 + 3 * 10**9
    assert frame.pixels.shape == (14, 14, 3)
    assert (frame.pixels == 200).all()


def test_repeats_show_the_old_picture_at_their_own_ticks() -> None:
    framer, _ = make()
    framer.push(picture(0, pts_s=0.0, value=10))
    frames = framer.push(picture(9, pts_s=0.75, value=90))
    assert [(f.tick, f.index, f.filled) for f in frames] == [
        (1, 0, True),
        (2, 0, True),
        (3, 9, False),
    ]
    assert [f.pixels[0, 0, 0] for f in frames] == [10, 10, 90]
    assert [f.captured_at_ns - 10**18 for f in frames] == [250_000_000, 500_000_000, 750_000_000]


def test_sampled_out_picture_is_not_converted() -> None:
    framer, sampler = make()
    framer.push(picture(0, pts_s=0.0))
    nonsense = np.zeros((32, 32, 7), np.uint8)
    assert framer.push(picture(1, pts_s=0.1, image=nonsense)) == []
    assert sampler.counts.sampled_out == 1


def test_broken_picture_is_bridged_and_counted_as_dropped() -> None:
    framer, sampler = make()
    nonsense = np.zeros((32, 32, 7), np.uint8)
    assert framer.push(picture(0, pts_s=0.0, image=nonsense)) == []
    framer.push(picture(1, pts_s=0.25, value=50))
    frames = framer.push(picture(2, pts_s=0.75, image=nonsense))
    assert [(f.tick, f.filled, int(f.pixels[0, 0, 0])) for f in frames] == [
        (2, True, 50),
        (3, True, 50),
    ]
    frames = framer.push(picture(3, pts_s=1.0, value=60))
    assert [(f.tick, f.filled) for f in frames] == [(4, False)]
    counts = sampler.counts
    assert (counts.used, counts.dropped, counts.filled) == (2, 2, 2)


def test_pictures_that_never_convert_end_the_stream() -> None:
    framer, _ = make()
    nonsense = np.zeros((32, 32, 7), np.uint8)
    with pytest.raises(SourceUnsupported, match="RGB"):
        for n in range(8):
            framer.push(picture(n, pts_s=n / 4, image=nonsense))


def test_another_shape_is_a_new_generation_a_rescaled_one_is_not() -> None:
    framer, _ = make()
    shapes = [(32, 32), (64, 64), (32, 48), (64, 96)]
    generations = [
        frame.generation
        for n, (height, width) in enumerate(shapes)
        for frame in framer.push(
            picture(n, pts_s=n / 4, image=np.zeros((height, width, 3), np.uint8))
        )
    ]
    assert generations == [0, 0, 1, 1]


def test_nothing_is_repeated_across_generations() -> None:
    framer, _ = make()
    framer.push(picture(0, pts_s=0.0))
    frames = framer.push(picture(1, pts_s=4.0))
    assert [(f.tick, f.generation, f.filled) for f in frames] == [(0, 1, False)]
