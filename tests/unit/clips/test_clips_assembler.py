"""Windows over the sampling grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.clips.assembler import ClipAssembler
from streamer.clips.config import ClipConfig
from streamer.errors import ConfigError
from streamer.records import Clip, Frame

pytestmark = pytest.mark.unit


def frame(
    tick: int, *, generation: int = 0, filled: bool = False, stream: str = "cam", index: int = -1
) -> Frame:
    return Frame(
        stream=stream,
        index=10 * tick if index < 0 else index,
        tick=tick,
        pts_s=tick / 4,
        captured_at_ns=10**18 + tick * 250_000_000,
        arrived_ns=1000 + tick,
        clock="media",
        generation=generation,
        filled=filled,
        pixels=np.full((1, 1, 3), tick % 256, np.uint8),
        decode_ms=float(tick),
    )


def make(*, frames: int = 4, stride_s: float = 0.5, bridge_limit_s: float = 2.0) -> ClipAssembler:
    config = ClipConfig(frames=frames, stride_s=stride_s, bridge_limit_s=bridge_limit_s)
    return ClipAssembler(config, stream="cam")


def seen(clip: Clip) -> list[int]:
    return [int(value) for value in clip.frames[:, 0, 0, 0]]


def test_first_clip_when_full_then_one_per_stride() -> None:
    assembler = make()
    clips = [clip for tick in range(9) for clip in assembler.push(frame(tick))]
    assert [seen(clip) for clip in clips] == [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7]]
    assert [clip.index for clip in clips] == [0, 1, 2]
    assert [clip.last_tick for clip in clips] == [3, 5, 7]
    assert assembler.finish() == []


def test_stride_longer_than_the_window_skips_frames() -> None:
    assembler = make(frames=2, stride_s=1.5)
    clips = [clip for tick in range(14) for clip in assembler.push(frame(tick))]
    assert [seen(clip) for clip in clips] == [[0, 1], [6, 7], [12, 13]]


def test_clip_carries_the_facts_of_its_frames() -> None:
    assembler = make()
    for tick in range(3):
        assembler.push(frame(tick, filled=tick == 1))
    (clip,) = assembler.push(frame(3), dropped=2, is_degraded=True)
    assert (clip.start_ns, clip.end_ns) == (10**18, 10**18 + 750_000_000)
    assert (clip.first_frame, clip.last_frame, clip.arrived_ns) == (0, 30, 1003)
    assert (clip.dropped, clip.filled, clip.padded) == (2, 1, 0)
    assert (clip.decode_ms, clip.degraded_fps, clip.fps) == (3.0, True, 4.0)
    assert clip.frames.shape == (4, 1, 1, 3) and clip.frames.dtype == np.uint8


def test_drops_leave_the_count_with_their_frame() -> None:
    assembler = make()
    assembler.push(frame(0), dropped=5)
    clips = [clip for tick in range(1, 6) for clip in assembler.push(frame(tick))]
    assert [clip.dropped for clip in clips] == [5, 0]


def test_new_generation_fills_anew() -> None:
    assembler = make()
    for tick in range(3):
        assembler.push(frame(tick))
    assert assembler.push(frame(0, generation=1)) == []
    assert (assembler.have, assembler.need) == (1, 4)
    clips = [clip for tick in range(1, 4) for clip in assembler.push(frame(tick, generation=1))]
    assert [(seen(clip), clip.generation) for clip in clips] == [([0, 1, 2, 3], 1)]


def test_lost_frames_are_bridged_and_counted() -> None:
    assembler = make()
    for tick in (0, 1):
        assembler.push(frame(tick))
    (first, second) = assembler.push(frame(5))
    assert seen(first) == [0, 1, 1, 1]
    assert seen(second) == [1, 1, 1, 5]
    assert (first.dropped, first.filled) == (2, 2)
    assert (second.dropped, second.filled) == (3, 3)
    assert second.last_tick == 5
    assert first.end_ns == 10**18 + 750_000_000


def test_longer_loss_fills_anew() -> None:
    assembler = make(bridge_limit_s=0.5)
    for tick in range(3):
        assembler.push(frame(tick))
    assert assembler.push(frame(6)) == []
    assert assembler.have == 1


def test_short_file_is_padded_in_front() -> None:
    assembler = make(frames=6)
    for tick in range(2):
        assembler.push(frame(tick))
    (clip,) = assembler.finish()
    assert seen(clip) == [0, 0, 0, 0, 0, 1]
    assert (clip.padded, clip.start_ns, clip.last_frame) == (4, 10**18, 10)


def test_nothing_comes_of_nothing() -> None:
    assert make().finish() == []


def test_a_short_part_of_a_file_can_be_finished_before_the_next_one() -> None:
    assembler = make()
    for tick in range(5):
        assembler.push(frame(tick))
    assert assembler.finish() == []
    for tick in range(2):
        assembler.push(frame(tick, generation=1))
    (clip,) = assembler.finish()
    assert (seen(clip), clip.padded, clip.generation) == ([0, 0, 0, 1], 2, 1)
    assert assembler.push(frame(0, generation=2)) == []


def test_foreign_and_backward_frames_are_refused() -> None:
    assembler = make()
    with pytest.raises(ValueError, match="stream 'other'"):
        assembler.push(frame(0, stream="other"))
    assembler.push(frame(5))
    with pytest.raises(ValueError, match="tick 5 after tick 5"):
        assembler.push(frame(5))


@given(
    st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=80),
    st.sampled_from([2, 4, 6]),
    st.sampled_from([2, 4, 8]),
)
def test_windows_are_exact(moves: list[tuple[int, bool]], length: int, stride: int) -> None:
    """A move loses so many frames, or starts a generation, and then pushes one."""
    assembler = make(frames=length, stride_s=stride / 4)
    line: list[tuple[int, int]] = []  # frame shown, lost before it (of the newest generation)
    expected: list[tuple[list[int], int]] = []
    clips: list[Clip] = []
    tick = generation = 0
    for number, (lost, breaks) in enumerate(moves):
        if breaks:
            generation, tick, lost = generation + 1, 0, 0
        if breaks or lost > 8:
            line = []
        elif line:
            line += [(line[-1][0], 1)] * lost
        line.append((number, 0))
        tick += lost
        clips += assembler.push(frame(tick, generation=generation, index=number))
        tick += 1
        start = len(line) - 1 - (lost if len(line) > 1 else 0)
        for end in range(start + 1, len(line) + 1):
            if end >= length and (end - length) % stride == 0:
                window = line[end - length : end]
                expected.append(([window[0][0], window[-1][0]], sum(n for _, n in window)))
    assert [([c.first_frame, c.last_frame], c.dropped) for c in clips] == expected
    assert [clip.index for clip in clips] == list(range(len(clips)))
    assert all(clip.filled == clip.dropped for clip in clips)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"frames": 0}, "frames is 0; a clip holds a positive multiple"),
        ({"frames": 63}, "frames is 63; a clip holds a positive multiple"),
        ({"tubelet": 0}, "tubelet is 0"),
        ({"fps": 0.0}, "fps is 0.0"),
        ({"fps": float("inf")}, "fps is inf"),
        ({"stride_s": 0.25}, r"stride_s is 0.25 at 4 fps; .* choose a multiple of 0.5 s"),
        ({"stride_s": 0.6}, "stride x fps must be a positive multiple"),
        ({"stride_s": 0.0}, "stride x fps must be a positive multiple"),
        ({"stride_s": float("nan")}, "stride x fps must be a positive multiple"),
        ({"bridge_limit_s": -1.0}, "bridge_limit_s is -1.0"),
    ],
)
def test_bad_config_says_so(bad: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        ClipConfig(**bad)


def test_odd_rates_have_whole_strides() -> None:
    config = ClipConfig(frames=16, fps=3.0, stride_s=2 / 3)
    assert config.stride_ticks == 2
