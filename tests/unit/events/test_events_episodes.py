"""What a log leaves open, and the event that closes it."""

from __future__ import annotations

import json

import pytest
from surprising import anticipation

from streamer.events.episodes import closing_body, speaks_of_episode, unclosed
from streamer.events.parts import SurprisePeak, TimeSpan
from streamer.events.render import Renderer, render
from streamer.events.schema import FeedOptions, SurpriseEpisodeBody, retained_body
from streamer.store.protocol import LogEntry

pytestmark = pytest.mark.unit

S = 1_000_000_000


def clip(second: int, z: float | None, episode: str | None = None) -> bytes:
    return retained_body(anticipation(end_ns=second * S, z=z, episode=episode))


def told(phase: str, episode: str, *, start: int, second: int, peak: float, seq: int) -> bytes:
    capture_time = f"1970-01-01T00:00:{second:02}.000000Z"
    body = SurpriseEpisodeBody(
        stream="cam",
        time=capture_time,
        phase=phase,
        episode=episode,
        reason="calm" if phase == "end" else None,
        window=TimeSpan(start=capture_time, end=capture_time),
        start=f"1970-01-01T00:00:{start:02}.000000Z",
        duration_s=second - start,
        peak=SurprisePeak(
            value=1.1, z=peak, seq=seq, capture_time=capture_time, horizon_s=0.5, predicted_by=1
        ),
        value=1.1,
        z=peak,
        baseline=1,
        threshold=6,
        anticipation=seq,
        model=anticipation(end_ns=0, z=None, episode=None).model,
    )
    return retained_body(body)


def log(*bodies: bytes, first: int = 1) -> list[LogEntry]:
    return [LogEntry(seq=seq, body=body) for seq, body in enumerate(bodies, first)]


QUIET = [clip(1, 0.0), clip(2, None), b'{"type":"stream.state","state":"live"}']
BEGUN = [*QUIET, clip(3, 7.0, "a"), told("begin", "a", start=3, second=3, peak=7, seq=4)]


def test_a_quiet_log_leaves_nothing_open() -> None:
    assert unclosed(log()) == {}
    assert unclosed(log(*QUIET)) == {}
    ended = told("end", "a", start=3, second=4, peak=7, seq=6)
    assert unclosed(log(*BEGUN, clip(4, 0.0, "a"), ended, clip(5, 0.0))) == {}


def test_an_open_episode_is_known_with_all_its_clips() -> None:
    found = unclosed(log(*BEGUN, clip(4, 9.0, "a"), clip(5, 8.0, "a"), clip(6, None)))
    (episode,) = found.values()
    assert (episode.episode, episode.start) == ("a", "1970-01-01T00:00:03.000000Z")
    assert (episode.peak.z, episode.peak.seq) == (9.0, 6)
    assert (episode.duration_s, episode.anticipation, episode.z) == (2.0, 7, 8.0)
    assert episode.threshold == 6


def test_one_that_only_its_anticipations_name_is_open_too() -> None:
    """Whoever made it was cut off before the second append."""
    found = unclosed(log(*QUIET, clip(3, 7.0, "a"), clip(4, 6.5, "a")))
    (episode,) = found.values()
    assert (episode.start, episode.duration_s) == ("1970-01-01T00:00:03.000000Z", 1.0)
    assert (episode.peak.z, episode.peak.seq, episode.threshold) == (7.0, 4, None)


def test_cut_off_before_the_end_was_told() -> None:
    (episode,) = unclosed(log(*BEGUN, clip(4, 0.0, "a"))).values()
    assert (episode.peak.z, episode.z) == (7.0, 0.0)


def test_all_that_are_open_are_found_whatever_lies_between() -> None:
    other = [clip(8, 7.0, "b"), told("begin", "b", start=8, second=8, peak=7, seq=7)]
    assert list(unclosed(log(*BEGUN, *other))) == ["a", "b"]


def test_a_log_whose_older_part_is_gone() -> None:
    update = told("update", "a", start=3, second=13, peak=8, seq=90)
    (episode,) = unclosed(log(update, clip(14, 7.0, "a"), first=91)).values()
    assert (episode.start, episode.peak.seq) == ("1970-01-01T00:00:03.000000Z", 90)


@pytest.mark.parametrize(
    "body",
    [
        {"type": "surprise", "episode": "a", "phase": "wild"},
        {"type": "anticipation", "surprise": {"episode": "a"}},
        {"type": "anticipation", "surprise": None, "episode": 3},
        {"episode": "a"},
    ],
    ids=str,
)
def test_what_another_version_wrote_is_left_alone(body: dict[str, object]) -> None:
    assert unclosed(log(json.dumps(body).encode(), *BEGUN)).keys() == {"a"}
    assert unclosed(log(json.dumps(body).encode())) == {}


def test_the_end_says_all_of_it() -> None:
    (episode,) = unclosed(log(*BEGUN, clip(5, 9.0, "a"))).values()
    end = closing_body(episode, reason="restart", time_ns=60 * S)
    assert (end.phase, end.reason, end.episode) == ("end", "restart", "a")
    assert (end.time, end.end) == ("1970-01-01T00:01:00.000000Z", "1970-01-01T00:00:05.000000Z")
    assert (end.start, end.duration_s, end.peak.z) == ("1970-01-01T00:00:03.000000Z", 2.0, 9.0)
    assert unclosed(log(*BEGUN, retained_body(end))) == {}


def test_what_was_heard_of_is_no_news() -> None:
    entries = log(*BEGUN)
    assert speaks_of_episode(entries, after_seq=3)
    assert not speaks_of_episode(entries, after_seq=4)  # its event belongs to that clip
    assert speaks_of_episode(log(*BEGUN, clip(4, 7.0, "a")), after_seq=4)
    assert not speaks_of_episode(log(*BEGUN, *QUIET), after_seq=4)


def test_what_thins_anticipations_leaves_episodes_whole() -> None:
    body = told("update", "a", start=3, second=13, peak=8, seq=90)
    options = FeedOptions(horizons_s=(9.0,), heads=("none",), top_k=1, min_score=0.9)
    assert Renderer().render(body, "e", 91, options=options) == render(body, "e", 91)
    assert not Renderer().is_wanted(body, FeedOptions(types=("anticipation",)))
    assert Renderer().is_wanted(body, FeedOptions(types=("surprise",)))
