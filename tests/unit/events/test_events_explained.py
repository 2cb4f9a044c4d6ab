"""What is wrong with a client's message is said in words of ours."""

from __future__ import annotations

import json

import pytest

from streamer.events.inbox import Refusal, parse_client_message

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (
            {"horizon": [1]},
            "session.update.horizon: there is no such field; did you mean horizons_s?",
        ),
        ({"qqq": 1}, "session.update.qqq: there is no such field."),
        ({"streams": []}, "session.update.streams: give at least 1."),
        ({"top_k": 0}, "session.update.top_k: must be at least 1."),
        ({"top_k": "x"}, "session.update.top_k: must be a whole number."),
        ({"min_score": 2}, "session.update.min_score: must be at most 1.0."),
        ({"horizons_s": 1}, "session.update.horizons_s: must be a list."),
        ({"type": "bogus"}, "type: there is no type bogus; it is one of 'session.update', "),
        ({"type": None}, "type: there is no type None; it is one of 'session.update', "),
        ({"type": "feed.resume"}, "feed.resume.after: is required."),
    ],
)
def test_a_refusal_says_what_to_do(message, problem):
    text = json.dumps({"type": "session.update"} | message)
    refusal = parse_client_message(text, max_bytes=1000)
    assert isinstance(refusal, Refusal)
    assert refusal.problem.startswith(problem)


def test_a_message_needs_a_type():
    refusal = parse_client_message("{}", max_bytes=1000)
    assert refusal == Refusal(problem="type: a type is missing.", in_reply_to=None)
