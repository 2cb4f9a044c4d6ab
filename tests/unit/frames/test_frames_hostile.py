"""Time stamps that make no sense: the sampler neither stalls nor fills without bound."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.frames.config import SamplerConfig
from streamer.frames.sampler import Pick, Sampler
from streamer.records import Picture

pytestmark = pytest.mark.unit

CONFIG = SamplerConfig(fps=4.0)
HOUR = 3600.0
PERIOD_S = 1 / 15


def picture(number: int, pts_s: float | None, *, arrived_s: float, clock: str = "media") -> Picture:
    return Picture(
        image=None,
        pts_s=pts_s,
        captured_at_ns=0,
        arrived_ns=round(arrived_s * 1e9),
        clock=clock,  # type: ignore[arg-type]
        generation=0,
        index=number,
    )


def play(said: list[tuple[float | None, float]], *, clock: str = "media") -> list[Pick | None]:
    """Pictures as (time stamp, arrival); each pick holds what is promised of it."""
    sampler = Sampler(CONFIG)
    picks: list[Pick | None] = []
    last: Pick | None = None
    for number, (pts_s, arrived_s) in enumerate(said):
        pick = sampler.push(picture(number, pts_s, arrived_s=arrived_s, clock=clock))
        picks.append(pick)
        counts = sampler.counts
        assert counts.used + counts.sampled_out + counts.dropped == number + 1
        if pick is None:
            continue
        assert 0 <= pick.fill <= CONFIG.max_fill
        assert math.isfinite(pick.pts_s)
        if last is None or pick.generation != last.generation:
            assert pick.generation == (0 if last is None else last.generation + 1)
            assert pick.tick == pick.fill == 0
        else:
            assert pick.tick == last.tick + 1 + pick.fill
        last = pick
    return picks


jump = st.sampled_from([0.0, -0.04, 0.1, -5.1, 5.1, HOUR, -HOUR, 1e9, -(2**32) / 90_000])
stamp = st.sampled_from(["own", "own", "own", None, math.nan, math.inf, 0.0, -1e300, 1.7e308])
late = st.sampled_from([0.0, PERIOD_S, PERIOD_S, 1.0, HOUR])


@given(
    st.lists(st.tuples(jump, stamp, late), max_size=40),
    st.sampled_from(["media", "rtcp", "file"]),
)
def test_whatever_comes_what_goes_out_is_bounded_and_in_order(
    steps: list[tuple[float, float | str | None, float]], clock: str
) -> None:
    said: list[tuple[float | None, float]] = []
    pts_s = arrived_s = 0.0
    for by_s, what, later_s in steps:
        pts_s += PERIOD_S + by_s
        arrived_s += later_s
        said.append((pts_s if isinstance(what, str) else what, arrived_s))
    play(said, clock=clock)


def count_after(picks: list[Pick | None], number: int) -> int:
    return sum(pick is not None for pick in picks[number:])


@pytest.mark.parametrize("by_s", [-5 * HOUR, 5 * HOUR, -(2**32) / 90_000, -(2**33) / 90_000])
def test_a_jump_of_hours_costs_two_pictures_and_a_generation(by_s: float) -> None:
    at = [number * PERIOD_S for number in range(300)]
    picks = play([(t + (by_s if n >= 150 else 0), t) for n, t in enumerate(at)])
    assert [pick is None for pick in picks[150:153]] == [True, True, False]
    assert count_after(picks, 152) == 40
    assert {pick.generation for pick in picks[152:] if pick} == {1}


@pytest.mark.parametrize("what", [None, math.nan, 12.5])
def test_no_time_at_all_or_one_for_ever_goes_by_arrival(what: float | None) -> None:
    picks = play([(what, number * PERIOD_S) for number in range(300)])
    assert count_after(picks, 0) == 80
    assert {pick.generation for pick in picks if pick} == {0}


def test_two_lines_of_time_in_turn_do_not_stall() -> None:
    """One of them is taken; the other's pictures are strays."""
    picks = play([(n * PERIOD_S + (HOUR if n % 2 else 0), n * PERIOD_S) for n in range(300)])
    assert count_after(picks, 0) == 80
    assert {pick.generation for pick in picks if pick} == {0}


def test_a_silence_of_hours_without_time_stamps_is_a_new_generation_not_a_fill() -> None:
    said: list[tuple[float | None, float]] = [(None, n * PERIOD_S) for n in range(30)]
    said += [(None, 9 * HOUR + n * PERIOD_S) for n in range(30)]
    picks = play(said)
    assert [pick.generation for pick in picks if pick and pick.tick == 0] == [0, 1]
