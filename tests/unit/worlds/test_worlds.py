"""Synthetic worlds: pure, and what they show is what they say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import ConfigError
from streamer.records import Pixels
from streamer.worlds.bounce import Bounce
from streamer.worlds.drift import Drift
from streamer.worlds.motion import bounce, wrap
from streamer.worlds.pulse import Pulse
from streamer.worlds.registry import WORLDS, make_world
from streamer.worlds.world import Stage
from streamer.worlds.zone import Zone

pytestmark = pytest.mark.unit

WIDE = Stage(height=60, width=120, fps=15.0)


def centre(pixels: Pixels, *, floor: Pixels) -> tuple[float, float]:
    """Centre of what differs from the floor, in sides."""
    weight = np.abs(pixels.astype(float) - floor.astype(float)).sum(axis=2)
    rows, columns = np.indices(weight.shape) + 0.5
    total = weight.sum()
    height, width = weight.shape
    return (columns * weight).sum() / total / width, (rows * weight).sum() / total / height


@pytest.mark.parametrize("name", WORLDS)
def test_pictures_are_pure_functions_of_name_seed_size_and_time(name: str) -> None:
    one, other = (make_world(name, seed=5, stage=WIDE) for _ in range(2))
    later = other.render(40)
    assert one.render(40).shape == (60, 120, 3) and one.render(40).dtype == np.uint8
    assert (one.render(40) == later).all()
    one.render(40)[:] = 0
    assert (one.render(40) == later).all()
    assert (make_world(name, seed=6, stage=WIDE).render(40) != later).any()


@pytest.mark.parametrize("name", WORLDS)
def test_truth_depends_on_time_only_not_on_size_or_rate(name: str) -> None:
    slow = make_world(name, seed=2, stage=Stage(height=64, width=64, fps=4))
    fast = make_world(name, seed=2, stage=Stage(height=256, width=256, fps=40))
    assert slow.truth(8) == fast.truth(80)
    assert slow.truth(8).time_s == 2.0


def test_drawn_place_is_the_true_place() -> None:
    world = Drift(seed=3, stage=Stage(height=100, width=140, fps=4))
    checked = 0
    for i in range(60):
        (body,) = world.truth(i).bodies
        if not (0.1 < body.x < 0.9 and 0.1 < body.y < 0.9):
            continue
        there = world.render(i)
        floor = np.median([world.render(i + n) for n in range(20, 200, 20)], axis=0)
        assert centre(there, floor=floor) == pytest.approx((body.x, body.y), abs=0.012)
        checked += 1
        if checked == 5:
            break
    assert checked == 5


def test_discs_are_antialiased() -> None:
    world = Pulse(seed=0, stage=Stage(height=96, width=96))
    row = world.render(0)[48].astype(int)
    edge = np.abs(np.diff(row.max(axis=1) - row.min(axis=1)))
    assert 10 < edge[24:34].max() < 200


def test_drift_keeps_its_velocity_around_the_edges() -> None:
    world = Drift(seed=1, stage=Stage(fps=10))
    bodies = [world.truth(i).bodies[0] for i in range(400)]
    assert len({(body.vx, body.vy) for body in bodies}) == 1
    for before, after in pairwise(bodies):
        assert (after.x - before.x - before.vx / 10 + 0.5) % 1 == pytest.approx(0.5, abs=1e-9)
        assert (after.y - before.y - before.vy / 10 + 0.5) % 1 == pytest.approx(0.5, abs=1e-9)


def test_bouncing_balls_stay_inside_and_turn_at_walls() -> None:
    world = Bounce(seed=4, stage=WIDE)
    directions = set()
    for i in range(0, 1500, 5):
        for body in world.truth(i).bodies:
            assert body.radius / 2 - 1e-9 <= body.x <= 1 - body.radius / 2 + 1e-9
            assert body.radius - 1e-9 <= body.y <= 1 - body.radius + 1e-9
            directions.add((body.vx > 0, body.vy > 0))
    assert len(directions) == 4


def test_body_crosses_the_zone() -> None:
    world = Zone(seed=0, stage=Stage(fps=10))
    (left, _), (width, _) = world.zone_corner, world.zone_size
    inside = [world.truth(i) for i in range(600)]
    assert {truth.is_in_zone for truth in inside} == {True, False}
    for truth in inside:
        assert truth.is_in_zone is (left <= truth.bodies[0].x <= left + width)


def test_lamp_is_periodic_and_shown() -> None:
    world = Pulse(seed=7, stage=Stage(fps=50))
    period = round(world.period_s * 50)
    states = [world.truth(i).is_lamp_on for i in range(period)]
    assert sum(map(bool, states)) == pytest.approx(period / 2, abs=1)
    for i in (0, period // 2, period - 1):
        red, green, _ = world.render(i)[48, 48]
        assert bool(green > red) is world.truth(i).is_lamp_on


@given(st.floats(0.1, 0.9), st.floats(-3, 3), st.floats(-1000, 1000))
def test_bounce_moves_at_its_speed_between_the_walls(start: float, speed: float, t: float) -> None:
    place, velocity = bounce(start, speed=speed, time_s=t, low=0.1, high=0.9)
    soon, _ = bounce(start, speed=speed, time_s=t + 1e-4, low=0.1, high=0.9)
    assert 0.1 - 1e-9 <= place <= 0.9 + 1e-9
    assert abs(velocity) == abs(speed)
    assert abs(soon - place) <= abs(speed) * 1e-4 + 1e-9
    assert 0 <= wrap(start, speed=speed, time_s=t) <= 1


def test_unknown_worlds_and_bad_sizes_say_so() -> None:
    with pytest.raises(ConfigError, match="did you mean 'bounce'"):
        make_world("bonce")
    with pytest.raises(ConfigError, match="seed is -1"):
        make_world("bounce", seed=-1)
    with pytest.raises(ConfigError, match="height is 8"):
        Stage(height=8)
    with pytest.raises(ConfigError, match="fps is 0"):
        Stage(fps=0)
