"""An episode begins, goes on and ends; the baseline stands still meanwhile."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import ConfigError
from streamer.futures.config import SurpriseConfig
from streamer.futures.episodes import Judged, Step, advance
from streamer.futures.surprise import score
from streamer.records import SurpriseState

pytestmark = pytest.mark.unit

CONFIG = SurpriseConfig(
    history=16, min_samples=4, min_spread=0.01, enter_z=6, exit_z=3, calm_clips=2, update_clips=4
)
QUIET = SurpriseState(history=(1.0,) * 8)
S = 1_000_000_000
START_S = 1000


def clip(value: float | None, *, number: int, state: SurpriseState, generation: int = 0) -> Judged:
    """As a judge makes it: number n is captured n seconds after the first."""
    captured_ns = (START_S + number) * S
    if value is None:
        return Judged(captured_ns=captured_ns, generation=generation)
    found = score(state.history, value=value, config=CONFIG)
    return Judged(
        captured_ns=captured_ns,
        generation=generation,
        value=value,
        z=found.z,
        horizon_s=1.0,
        predicted_by=number,
    )


def played(
    values: Iterable[float | None],
    *,
    state: SurpriseState = QUIET,
    config: SurpriseConfig = CONFIG,
    generations: dict[int, int] | None = None,
) -> list[Step]:
    """Clip n becomes event 10 n and a new episode would be called after it."""
    steps = []
    for number, value in enumerate(values, start=1):
        generation = (generations or {}).get(number, 0)
        judged = clip(value, number=number, state=state, generation=generation)
        step = advance(state, judged, new_id=f"e{number}", config=config).numbered(10 * number)
        state = step.state
        steps.append(step)
    return steps


def told(steps: Iterable[Step]) -> list[tuple[int, str, str, str | None]]:
    """Clip, phase, episode, reason."""
    return [
        (number, step.phase, step.episode.id, step.reason)
        for number, step in enumerate(steps, start=1)
        if step.phase and step.episode
    ]


def test_it_begins_high_and_ends_low_for_some_clips_in_a_row() -> None:
    # z: 0 5 7 2 5 2 2 0
    steps = played([1.0, 1.05, 1.07, 1.02, 1.05, 1.02, 1.02, 1.0])
    assert told(steps) == [(3, "begin", "e3", None), (7, "end", "e3", "calm")]
    assert [step.episode is not None for step in steps] == [False, False, *[True] * 5, False]
    end = steps[6].episode
    assert end is not None
    assert (end.start_ns, end.last_ns) == ((START_S + 3) * S, (START_S + 7) * S)
    assert (end.peak.seq, end.peak.value, end.peak.predicted_by) == (30, 1.07, 3)


def test_nothing_begins_while_the_baseline_fills() -> None:
    steps = played([1.0, 1.0, 1.0, 9.0, 9.0], state=SurpriseState())
    assert told(steps) == [(5, "begin", "e5", None)]


def test_the_baseline_takes_in_nothing_of_an_episode() -> None:
    steps = played([1.0, 1.5, 1.5, 1.5, 1.01, 1.0, 1.2])
    before = (*QUIET.history, 1.0)
    assert [step.state.history for step in steps[1:5]] == [before] * 4
    assert steps[5].phase == "end" and steps[5].state.history == (*before, 1.0)
    assert steps[6].phase == "begin"  # as surprising as ever


def test_updates_come_when_the_peak_rises_much_and_else_now_and_then() -> None:
    # z: 8 9 10.1 10 10 10 10 10
    steps = played([1.08, 1.09, 1.101, 1.1, 1.1, 1.1, 1.1, 1.1])
    phases = [(number, phase) for number, phase, *_ in told(steps)]
    assert phases == [(1, "begin"), (3, "update"), (7, "update")]
    assert steps[2].episode is not None and steps[2].episode.peak.seq == 30
    assert steps[6].episode is not None and steps[6].episode.peak.seq == 30


def test_another_connection_ends_it_where_it_was() -> None:
    steps = played([1.5, 1.5, None, 1.5], generations={3: 1, 4: 1})
    assert told(steps) == [
        (1, "begin", "e1", None),
        (3, "end", "e1", "reconnected"),
        (4, "begin", "e4", None),
    ]
    assert steps[2].episode is not None
    assert steps[2].episode.last_ns == (START_S + 2) * S


def test_what_lasts_too_long_is_the_new_normal() -> None:
    config = replace(CONFIG, max_episode_s=5)
    steps = played([1.5] * 12 + [2.5], config=config)
    assert [each for each in told(steps) if each[1] != "update"] == [
        (1, "begin", "e1", None),
        (6, "end", "e1", "too_long"),
        (13, "begin", "e13", None),
    ]
    assert steps[5].state.history == (1.5,)


def test_a_clip_that_nothing_foretold_neither_calms_nor_ends_it() -> None:
    steps = played([1.5, 1.0, None, None, None, 1.0])
    assert told(steps) == [
        (1, "begin", "e1", None),
        (5, "update", "e1", None),
        (6, "end", "e1", "calm"),
    ]


def test_a_clip_without_surprise_changes_nothing_of_a_quiet_stream() -> None:
    assert played([None])[0] == Step(state=QUIET)


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1000)), max_size=60),
    st.dictionaries(st.integers(1, 60), st.integers(0, 3)),
)
def test_every_log_of_it_is_whole(values: list[float | None], generations: dict[int, int]) -> None:
    """Begin, updates, end; never two at once; peaks that were there and do not fall."""
    config = replace(CONFIG, max_episode_s=20)
    open_id, peak = None, 0.0
    for number, step in enumerate(played(values, config=config, generations=generations), 1):
        was_open, episode = open_id is not None, step.episode
        assert (episode is not None) == (was_open or step.phase == "begin")
        if step.phase == "begin":
            assert not was_open and episode is not None
            open_id, peak = episode.id, 0.0
        if episode is not None:
            assert episode.id == open_id
            assert peak <= episode.peak.z and 10 <= episode.peak.seq <= 10 * number
            peak = episode.peak.z
        assert (step.reason is not None) == (step.phase == "end")
        if step.phase == "end":
            open_id = None
        assert (step.state.episode is not None) == (open_id is not None)
        assert len(step.state.history) <= config.history


def test_a_long_ramp_gives_few_events() -> None:
    config = replace(CONFIG, update_clips=100)
    steps = played([1 + 0.07 * 1.01**n for n in range(290)], config=config)  # 290 clips, z by 18
    assert 1 + 10 <= len(told(steps)) <= 1 + 13 + 2


def test_the_largest_state_is_below_a_kilobyte() -> None:
    config = SurpriseConfig()
    state = SurpriseState(
        history=tuple(round(1.0345678 + n / 1e7, 7) for n in range(config.history))
    )
    judged = Judged(
        captured_ns=1_764_580_000_123_456_789,
        generation=12345,
        value=1.2345678,
        z=1234.5678,
        horizon_s=12.345678,
        predicted_by=123_456_789,
    )
    step = advance(state, judged, new_id="01KBCD0000000000000000000A", config=config)
    full = step.numbered(123_456_790).state
    assert full.episode is not None and len(full.history) == config.history
    assert len(pickle.dumps(full)) < 1024
    assert len(json.dumps(asdict(full), separators=(",", ":"))) < 1024


@pytest.mark.parametrize(
    "wrong",
    [
        {"enter_z": 2.0},
        {"enter_z": float("nan")},
        {"exit_z": 0.0},
        {"calm_clips": 0},
        {"update_clips": 101},
        {"max_episode_s": 0.0},
        {"max_episode_s": float("inf")},
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        SurpriseConfig(**wrong)
