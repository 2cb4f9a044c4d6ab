"""Latent pictures of a feed session: last in line, newest only, and only if wanted."""

from __future__ import annotations

import pytest

from streamer.events.schema import FeedOptions, LatentPanel, server_message
from streamer.events.showcase import Showcase, Shown

pytestmark = pytest.mark.unit

STREAM = "kitchen"
TIME = "2026-12-01T09:00:03.000000Z"


def shown(seq, *, stream=STREAM):
    panels = (LatentPanel(horizon_s=0.0, png="data:image/png;base64,AA=="),)
    return Shown(stream=stream, seq=seq, capture_time=TIME, panels=panels)


@pytest.fixture
def talk(talk_to, log):
    talk = talk_to(log, options=FeedOptions(picture=True))
    talk.take()
    return talk


def test_a_picture_is_told_with_its_anticipation(talk):
    talk.session.show(shown(4))
    message = talk.session.next_message(now_ns=0)
    told = server_message.validate_json(message.data).model_dump()
    assert (told["type"], told["stream"], told["anticipation"]) == ("latent.picture", STREAM, 4)
    assert (told["capture_time"], told["panels"][0]["horizon_s"]) == (TIME, 0.0)
    assert not message.is_retained
    assert talk.take() is None


def test_events_and_answers_go_first_and_the_newest_picture_stays(talk):
    talk.session.show(shown(1))
    talk.append(2)
    talk.session.show(shown(2))
    talk.say(type="session.update", top_k=3)
    came = talk.take_all()
    assert [each["type"] for each in came] == [
        "session.updated",
        "stream.state",
        "stream.state",
        "latent.picture",
    ]
    assert came[-1]["anticipation"] == 2


def test_a_picture_takes_no_room_from_events(talk_to, log):
    talk = talk_to(log, options=FeedOptions(picture=True))
    for seq in range(1, 1000):
        talk.session.show(shown(seq))
    assert talk.session.close is None
    assert [each["type"] for each in talk.take_all()] == ["session.created", "latent.picture"]


def test_it_is_an_option(talk_to, log):
    talk = talk_to(log)
    talk.session.show(shown(1))
    assert [each["type"] for each in talk.take_all()] == ["session.created"]
    talk.say(type="session.update", picture=True)
    assert talk.take()["options"]["picture"] is True
    assert talk.take() is None  # what was not wanted then is gone
    talk.session.show(shown(2))
    talk.say(type="session.update", picture=None)
    assert [each["type"] for each in talk.take_all()] == ["session.updated"]


def test_a_paused_feed_shows_none(talk):
    talk.say(type="feed.pause")
    talk.session.show(shown(1))
    assert [each["type"] for each in talk.take_all()] == ["session.updated"]


def test_a_picture_does_not_put_off_the_heartbeat_when_it_is_not_sent(talk_to, log):
    talk = talk_to(log)
    talk.take()
    talk.now_s = 6
    talk.session.show(shown(1))
    assert talk.take()["type"] == "heartbeat"


def test_streams_take_turns_and_those_that_left_are_forgotten():
    showcase = Showcase()
    for each in (shown(1, stream="a"), shown(1, stream="b"), shown(2, stream="a")):
        showcase.put(each)
    assert showcase.pop({"b"}).stream == "b"
    assert showcase.pop({"b"}) is None
