"""The bounded ring of frames."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.frames.config import RingConfig
from streamer.frames.ring import FrameRing
from streamer.records import Frame

pytestmark = pytest.mark.unit


def frame(tick: int, *, generation: int = 0, crop: int = 2) -> Frame:
    return Frame(
        stream="cam",
        index=tick,
        tick=tick,
        pts_s=tick / 4,
        captured_at_ns=0,
        arrived_ns=0,
        clock="media",
        generation=generation,
        filled=False,
        pixels=np.full((crop, crop, 3), tick % 256, np.uint8),
    )


def ticks(frames: list[Frame]) -> list[int]:
    for each in frames:
        assert (each.pixels == each.tick % 256).all()
    return [each.tick for each in frames]


def test_newest_are_kept_and_the_overwritten_counted() -> None:
    ring = FrameRing(RingConfig(capacity=3, crop=2))
    for tick in range(5):
        ring.put(frame(tick))
    assert ticks(ring.newest(2)) == [3, 4]
    assert ticks(ring.take()) == [2, 3, 4]
    assert ring.overwritten == 2
    assert ring.take() == []
    assert ticks(ring.newest(9)) == [2, 3, 4]
    assert ring.newest(0) == []


def test_taken_pixels_do_not_change_afterwards() -> None:
    ring = FrameRing(RingConfig(capacity=1, crop=2))
    ring.put(frame(1))
    (taken,) = ring.take()
    ring.put(frame(2))
    assert (taken.pixels == 1).all()


def test_new_generation_empties_it() -> None:
    ring = FrameRing(RingConfig(capacity=4, crop=2))
    ring.put(frame(7))
    ring.put(frame(0, generation=1))
    assert (len(ring), ring.generation, ring.overwritten) == (1, 1, 1)
    assert ticks(ring.take()) == [0]


def test_wrong_shape_is_refused() -> None:
    ring = FrameRing(RingConfig(capacity=4, crop=2))
    with pytest.raises(ValueError, match=r"takes uint8 \[2, 2, 3\]"):
        ring.put(frame(0, crop=3))


@given(st.integers(1, 6), st.lists(st.one_of(st.none(), st.integers(0, 2)), max_size=60))
def test_every_frame_is_taken_once_or_counted(capacity: int, moves: list[int | None]) -> None:
    """None takes; a number puts the next frame, 0 with a new generation."""
    ring = FrameRing(RingConfig(capacity=capacity, crop=1))
    taken: list[int] = []
    put = generation = 0
    for move in moves:
        if move is None:
            taken += ticks(ring.take())
            continue
        generation += move == 0
        ring.put(frame(put, generation=generation, crop=1))
        put += 1
        assert len(ring) <= capacity
    taken += ticks(ring.take())
    assert len(taken) + ring.overwritten == put
    assert taken == sorted(set(taken))
