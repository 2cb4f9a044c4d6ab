"""A reader's book-keeping: what came, what did not, what was told."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.bench.tally import Tally
from streamer.clock import format_utc

pytestmark = pytest.mark.unit

SECOND = 10**9


def created(head: int, epoch: str = "e1") -> dict[str, Any]:
    return {"type": "session.created", "streams": [{"epoch": epoch, "head_seq": head}]}


def event(seq: int, *, age_s: float = 0.0, kind: str = "anticipation") -> dict[str, Any]:
    captured = format_utc(100 * SECOND - round(age_s * SECOND))
    return {"type": kind, "seq": seq, "id": f"e1:{seq}", "capture_time": captured}


def gap(first: int, last: int, reason: str) -> dict[str, Any]:
    return {"type": "gap", "from_seq": first, "to_seq": last, "reason": reason}


def tally_of(*messages: dict[str, Any]) -> Tally:
    tally = Tally()
    for message in messages:
        tally.receive(message, now_ns=100 * SECOND)
    return tally


def test_a_whole_sequence_from_the_head_on() -> None:
    tally = tally_of(created(7), event(8, age_s=0.5), event(9, age_s=0.25), {"type": "heartbeat"})
    assert (tally.events, tally.holes, tally.repeats, tally.told) == (2, 0, 0, 0)
    assert tally.cursor == "e1:9"
    assert tally.take_ages() == [0.5, 0.25]
    assert tally.take_ages() == []


def test_states_are_events_without_an_age() -> None:
    tally = tally_of(created(0), event(1, kind="stream.state"), event(2))
    assert (tally.events, tally.take_ages()) == (2, [0.0])


def test_what_nobody_told_is_a_hole_and_what_came_before_is_a_repeat() -> None:
    tally = tally_of(created(0), event(1), event(4), event(4), event(3), event(5))
    assert (tally.events, tally.holes, tally.repeats) == (3, 2, 2)


def test_a_cursor_is_there_before_the_first_event() -> None:
    assert tally_of(created(7)).cursor == "e1:7"


def test_a_second_session_does_not_move_the_cursor() -> None:
    tally = tally_of(created(0), event(1), created(5), event(2))
    assert (tally.cursor, tally.holes) == ("e1:2", 0)


def test_told_losses_are_no_holes() -> None:
    tally = tally_of(created(0), event(1), gap(2, 5, "slow_subscriber"), event(6))
    assert (tally.holes, tally.told, dict(tally.gaps)) == (0, 4, {"slow_subscriber": 1})


def test_a_gap_that_begins_too_late_tells_too_little() -> None:
    assert tally_of(created(0), event(1), gap(4, 5, "retention"), event(6)).holes == 2


def test_after_a_restart_numbers_begin_anew() -> None:
    tally = tally_of(created(0), event(1), event(2), gap(1, 0, "restart"), event(1), event(2))
    assert (tally.events, tally.holes, tally.repeats, tally.told) == (4, 0, 0, 0)
