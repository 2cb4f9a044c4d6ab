"""Worlds played as cameras."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from streamer.clock import wall_ns
from streamer.errors import ConfigError
from streamer.records import Picture, SourceState
from streamer.sources.config import SyntheticConfig
from streamer.sources.synthetic import SyntheticSource, parse_synthetic
from streamer.worlds.registry import make_world
from streamer.worlds.world import Stage

pytestmark = pytest.mark.unit

SECOND = 10**9


class Clock:
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        self.ns = 5 * SECOND
        self.born_at_ns = wall_ns() - self.ns
        self.waits: list[float] = []

    def now_ns(self) -> int:
        return self.ns

    def wall_ns(self) -> int:
        return self.born_at_ns + self.ns

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        self.waits.append(seconds)
        self.ns += round(seconds * SECOND)
        return stop.is_set()


def play(query: str, *, clock: Clock | None = None) -> list[Picture]:
    clock = clock or Clock()
    options = parse_synthetic(f"synthetic:bounce?{query}", config=SyntheticConfig())
    source = SyntheticSource(
        options, name="s", now_ns=clock.now_ns, wall=clock.wall_ns, wait=clock.wait
    )
    pictures: list[Picture] = []
    source.run(sink=pictures.append, report=lambda _: None, stop=threading.Event())
    return pictures


def test_past_comes_at_once_and_the_present_in_real_time() -> None:
    clock = Clock()
    before = wall_ns()
    pictures = play("fps=10&frames=25&preroll_s=2&size=16", clock=clock)
    assert [p.pts_s for p in pictures] == pytest.approx([n / 10 for n in range(25)])
    assert [p.index for p in pictures] == list(range(25))
    assert clock.waits == pytest.approx([0.1] * 4)
    assert pictures[20].captured_at_ns == pytest.approx(before, abs=5 * SECOND)
    assert pictures[20].captured_at_ns - pictures[0].captured_at_ns == 2 * SECOND
    assert {(p.clock, p.generation) for p in pictures} == {("media", 0)}
    assert [p.is_past for p in pictures] == [True] * 20 + [False] * 5
    assert not any(p.is_past for p in play("fps=10&frames=25&preroll_s=2&size=16&pace=fast"))


def test_default_past_fills_one_default_clip() -> None:
    clock = Clock()
    pictures = play("fps=4&frames=64&size=16", clock=clock)
    assert len(pictures) == 64 and clock.waits == []
    assert pictures[-1].captured_at_ns <= wall_ns()


def test_pictures_are_those_of_the_world() -> None:
    pictures = play("seed=3&fps=5&frames=3&size=40x20")
    world = make_world("bounce", seed=3, stage=Stage(height=20, width=40, fps=5))
    assert (pictures[2].image == world.render(2)).all()
    assert pictures[2].image.dtype == np.uint8


def test_slow_sink_makes_it_skip_like_a_camera() -> None:
    clock = Clock()
    options = parse_synthetic(
        "synthetic:drift?fps=10&frames=60&preroll_s=0&size=16", config=SyntheticConfig()
    )
    source = SyntheticSource(
        options, name="s", now_ns=clock.now_ns, wall=clock.wall_ns, wait=clock.wait
    )
    indices: list[int] = []

    def sink(picture: Picture) -> None:
        indices.append(picture.index)
        if picture.index == 3:
            clock.ns += 3 * SECOND

    source.run(sink=sink, report=lambda _: None, stop=threading.Event())
    assert indices == [0, 1, 2, 3, *range(33, 60)]


@pytest.mark.parametrize("by_s", [-3600, 3600])
def test_capture_times_follow_our_clock_when_it_is_set(by_s: int) -> None:
    clock = Clock()
    options = parse_synthetic(
        "synthetic:drift?fps=10&frames=20&preroll_s=0&size=16", config=SyntheticConfig()
    )
    source = SyntheticSource(
        options, name="s", now_ns=clock.now_ns, wall=clock.wall_ns, wait=clock.wait
    )
    late_s: list[float] = []

    def sink(picture: Picture) -> None:
        late_s.append((clock.wall_ns() - picture.captured_at_ns) / SECOND)
        if picture.index == 9:
            clock.born_at_ns += by_s * SECOND

    source.run(sink=sink, report=lambda _: None, stop=threading.Event())
    assert late_s == pytest.approx([0.0] * 20, abs=1e-6)


def test_fast_pace_never_waits_and_loses_nothing() -> None:
    clock = Clock()
    pictures = play("pace=fast&duration_s=3&fps=10&preroll_s=0&size=16", clock=clock)
    assert len(pictures) == 30 and clock.waits == []
    options = parse_synthetic("synthetic:zone?pace=fast", config=SyntheticConfig())
    assert not SyntheticSource(options, name="s").live


def test_stop_wakes_it_while_it_waits() -> None:
    options = parse_synthetic(
        "synthetic:pulse?fps=0.1&preroll_s=0&size=16", config=SyntheticConfig()
    )
    source = SyntheticSource(options, name="s")
    stop, first = threading.Event(), threading.Event()
    states: list[SourceState] = []
    thread = threading.Thread(
        target=source.run,
        kwargs={"sink": lambda _: first.set(), "report": states.append, "stop": stop},
    )
    thread.start()
    assert first.wait(10)
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    assert [s.state for s in states] == ["starting", "live"]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("sed=1", "'sed' is unknown; did you mean 'seed'"),
        ("seed=-1", "seed is '-1'; it is a whole number"),
        ("seed=1&seed=2", "'seed' is given twice"),
        ("seed=", "'seed' has no value"),
        ("fps=0", "fps is '0'; it is a number from 0.1 to 120"),
        ("fps=nan", "fps is 'nan'"),
        ("fps=fast", "fps is 'fast'"),
        ("size=8", "size is '8'; write one side or WIDTHxHEIGHT"),
        ("size=96x", "size is '96x'"),
        ("size=4000x96", "size is '4000x96'"),
        ("pace=slow", "pace is 'slow'; choose realtime or fast"),
        ("frames=0", "frames is '0'"),
        ("frames=3&duration_s=1", "exclude each other"),
        ("duration_s=inf", "duration_s is 'inf'"),
        ("preroll_s=-1", "preroll_s is '-1'"),
    ],
)
def test_bad_options_say_so(query: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse_synthetic(f"synthetic:bounce?{query}", config=SyntheticConfig())


def test_unknown_scene_says_what_there_is() -> None:
    with pytest.raises(ConfigError, match="did you mean 'bounce'"):
        parse_synthetic("synthetic:bouncy", config=SyntheticConfig())
    with pytest.raises(ConfigError, match="preroll_s is -1"):
        SyntheticConfig(preroll_s=-1)
