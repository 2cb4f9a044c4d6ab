"""Pictures on the sampling grid."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import ConfigError
from streamer.frames.config import PixelConfig, SamplerConfig
from streamer.frames.sampler import Pick, Sampler
from streamer.records import Picture

pytestmark = pytest.mark.unit


def picture(pts_s: float | None, *, index: int = 0, generation: int = 0) -> Picture:
    return Picture(
        image=None,
        pts_s=pts_s,
        captured_at_ns=0,
        arrived_ns=index * 66_000_000,
        clock="media",
        generation=generation,
        index=index,
    )


def sample(times: Iterable[float | None], *, fps: float = 4.0) -> tuple[Sampler, list[Pick | None]]:
    sampler = Sampler(SamplerConfig(fps=fps))
    return sampler, [sampler.push(picture(time, index=n)) for n, time in enumerate(times)]


@pytest.mark.parametrize(
    ("source_fps", "expected"),
    [(15, [0, 4, 8, 12, 15]), (25, [0, 7, 13, 19, 25]), (30, [0, 8, 15, 23, 30]), (4, [0, 1, 2])],
)
def test_takes_the_first_picture_at_or_after_each_tick(
    source_fps: int, expected: list[int]
) -> None:
    _, picks = sample(n / source_fps for n in range(expected[-1] + 1))
    assert [n for n, pick in enumerate(picks) if pick] == expected
    assert [pick.tick for pick in picks if pick] == list(range(len(expected)))


def test_jitter_at_the_rate_of_the_grid_loses_and_repeats_nothing() -> None:
    jitter = (0.0, 0.008, -0.009, 0.005, -0.01, 0.002)
    sampler, _ = sample(n / 4 + jitter[n % 6] for n in range(200))
    assert (sampler.counts.used, sampler.counts.filled) == (200, 0)


def test_missed_ticks_are_filled_up_to_the_limit() -> None:
    sampler, picks = sample([0.0, 0.25, 2.5])
    assert picks[2] == Pick(tick=10, fill=8, generation=0, pts_s=2.5)
    assert sampler.counts.filled == 8


def test_longer_hole_starts_a_new_generation() -> None:
    sampler, picks = sample([0.0, 0.25, 2.75, 3.0])
    assert picks[2] == Pick(tick=0, fill=0, generation=1, pts_s=2.75)
    assert picks[3] == Pick(tick=1, fill=0, generation=1, pts_s=3.0)
    assert sampler.counts.filled == 0


def test_single_outlier_is_dropped_and_three_are_a_new_generation() -> None:
    sampler, picks = sample([0.0, 0.25, 999.0, 0.5, 0.75, 700.0, 700.25, 700.5, 700.75])
    assert [pick and (pick.generation, pick.tick) for pick in picks] == [
        (0, 0),
        (0, 1),
        None,
        (0, 2),
        (0, 3),
        None,
        None,
        (1, 0),
        (1, 1),
    ]
    assert sampler.counts.dropped == 3


def test_new_connection_is_a_new_generation() -> None:
    sampler = Sampler(SamplerConfig())
    sampler.push(picture(5.0))
    pick = sampler.push(picture(5.25, generation=1))
    assert pick == Pick(tick=0, fill=0, generation=1, pts_s=5.25)


def test_restart_begins_a_generation_with_the_next_picture() -> None:
    sampler = Sampler(SamplerConfig())
    sampler.push(picture(5.0))
    sampler.restart()
    pick = sampler.push(picture(5.1))
    assert pick is not None and (pick.generation, pick.tick) == (1, 0)


def test_file_pictures_ignore_arrival() -> None:
    sampler = Sampler(SamplerConfig())
    times = [0.0, 0.0, 0.25]
    picks = [
        sampler.push(
            Picture(
                image=None,
                pts_s=pts_s,
                captured_at_ns=0,
                arrived_ns=n * 60 * 10**9,
                clock="file",
                generation=0,
                index=n,
            )
        )
        for n, pts_s in enumerate(times)
    ]
    assert [pick and pick.tick for pick in picks] == [0, None, 1]


@pytest.mark.parametrize(
    ("source_fps", "degraded"), [(2, True), (3.7, True), (4, False), (25, False)]
)
def test_true_rate_says_whether_the_source_is_too_slow(source_fps: float, degraded: bool) -> None:
    sampler, _ = sample(n / source_fps for n in range(60))
    assert sampler.source_fps == pytest.approx(source_fps)
    assert sampler.is_degraded is degraded


def test_bursts_do_not_fool_the_rate() -> None:
    """Four pictures at once every second are still 4 fps."""
    sampler, _ = sample(second + burst / 1000 for second in range(40) for burst in range(4))
    assert sampler.source_fps == pytest.approx(4, rel=0.1)


def test_discard_turns_a_used_picture_into_a_dropped_one() -> None:
    sampler, _ = sample([0.0])
    sampler.discard(is_bridged=False)
    counts = sampler.counts
    assert (counts.used, counts.dropped, counts.filled) == (0, 1, 0)


wild = st.one_of(
    st.none(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(min_value=-1, max_value=30),
)


@given(st.lists(wild, max_size=60), st.sampled_from([1.0, 4.0, 10.0]))
def test_every_picture_has_one_fate_and_ticks_are_contiguous(
    times: list[float | None], fps: float
) -> None:
    sampler, picks = sample(times, fps=fps)
    counts = sampler.counts
    assert counts.used + counts.sampled_out + counts.dropped == len(times)
    assert counts.used == sum(pick is not None for pick in picks)
    assert counts.filled == sum(pick.fill for pick in picks if pick)
    expected = (-1, -1)
    for pick in picks:
        if pick is None:
            continue
        generation, tick = expected
        if pick.generation != generation:
            assert pick.generation == generation + 1
            tick = -1
        assert pick.tick == tick + 1 + pick.fill
        expected = (pick.generation, pick.tick)


@given(st.lists(st.floats(min_value=0.001, max_value=0.5), min_size=1, max_size=80))
def test_rising_times_always_take_the_first_picture_at_or_after_a_tick(gaps: list[float]) -> None:
    times = [0.0]
    for gap in gaps:
        times.append(times[-1] + gap)
    _, picks = sample(times)
    for time, pick in zip(times, picks, strict=True):
        if pick:
            assert -0.026 < time - pick.tick / 4 < 0.25


@pytest.mark.parametrize(
    "bad",
    [
        {"fps": 0},
        {"fps": float("nan")},
        {"fill_limit_s": -1},
        {"fill_limit_s": 6.0},
        {"strays_for_new_timeline": 0},
        {"rate_span_s": 0},
    ],
)
def test_bad_config_says_so(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        SamplerConfig(**bad)  # type: ignore[arg-type]


def test_bad_sizes_say_so() -> None:
    with pytest.raises(ConfigError, match="crop is 0"):
        PixelConfig(crop=0)
