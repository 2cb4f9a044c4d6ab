"""Delays between tries."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.backoff import Backoff, delays

pytestmark = pytest.mark.unit


def first(count: int, backoff: Backoff, *, seed: int = 0) -> list[float]:
    return list(islice(delays(backoff, rng=random.Random(seed)), count))


def test_doubles_up_to_the_cap() -> None:
    assert first(8, Backoff(jitter=0)) == [0.5, 1, 2, 4, 8, 16, 30, 30]


@given(seed=st.integers(0, 10_000), jitter=st.floats(0, 0.5))
def test_jitter_spreads_and_never_exceeds_the_cap(seed: int, jitter: float) -> None:
    exact = first(8, Backoff(jitter=0))
    for delay, middle in zip(first(8, Backoff(jitter=jitter), seed=seed), exact, strict=True):
        assert (1 - jitter) / (1 + jitter) * middle - 1e-9 <= delay
        assert delay <= min(30.0, middle * (1 + jitter)) + 1e-9


def test_delays_at_the_cap_still_differ() -> None:
    assert len(set(first(40, Backoff()))) == 40


def test_same_seed_same_delays() -> None:
    assert first(5, Backoff(), seed=3) == first(5, Backoff(), seed=3) != first(5, Backoff(), seed=4)


def test_fixed_delay_and_limited_tries() -> None:
    locked = Backoff(first_s=300, factor=1, cap_s=300, jitter=0, max_tries=3)
    assert first(9, locked) == [300, 300]
    assert first(9, Backoff(max_tries=1)) == []
    assert first(3, Backoff(first_s=60, factor=1, cap_s=60, jitter=0)) == [60, 60, 60]


def test_goes_on_for_days() -> None:
    assert first(20_000, Backoff(jitter=0))[-1] == 30


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"first_s": 0}, "first <= cap"),
        ({"first_s": 31}, "first <= cap"),
        ({"cap_s": float("inf")}, "first <= cap"),
        ({"factor": 0.5}, "factor"),
        ({"jitter": 1}, "jitter"),
        ({"jitter": -0.1}, "jitter"),
        ({"max_tries": 0}, "max_tries"),
    ],
)
def test_wrong_settings(fields: dict[str, float], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Backoff(**fields)
