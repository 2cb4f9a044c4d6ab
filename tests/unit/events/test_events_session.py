"""The feed session, behaviour by behaviour."""

from __future__ import annotations

import json

import pytest

from streamer.errors import ProtocolViolation, ResumeGone, SubscriberTooSlow
from streamer.events.config import FeedConfig
from streamer.events.outbox import Loss, Outbox
from streamer.events.schema import FeedOptions, server_message

pytestmark = pytest.mark.unit


def fill(log, count, kind="stream.state"):
    for _ in range(count):
        log.append(kind)


def seqs(messages):
    return [message["seq"] for message in messages if "seq" in message]


def gaps(messages):
    return [
        (message["from_seq"], message["to_seq"], message["reason"])
        for message in messages
        if message["type"] == "gap"
    ]


def greet(talk):
    """Take the first message."""
    created = talk.take()
    assert created["type"] == "session.created"
    return created


# opening ----------------------------------------------------------------------------------------
def test_first_message_says_what_is_in_force(log, talk_to):
    fill(log, 12)
    log.trim(4)
    created = greet(talk_to(log, options=FeedOptions(top_k=3)))
    assert created["protocol"] == "streamer.v1"
    assert created["streams"] == [
        {"stream": "kitchen", "epoch": "e1", "head_seq": 12, "first_seq": 5}
    ]
    assert created["options"]["top_k"] == 3
    assert created["limits"]["outbox"] == 256
    kinds = {name: type(limit) for name, limit in created["limits"].items()}
    assert (kinds["outbox"], kinds["slow_grace_s"]) == (int, float)
    assert created["time"] == "2026-12-01T09:00:03.412345Z"
    assert len(created["session"]) == len(created["id"]) == 26


def test_without_a_cursor_the_feed_starts_from_now_on(log, talk_to):
    fill(log, 3)
    talk = talk_to(log)
    talk.append(2)
    assert seqs(talk.flow()) == [4, 5]


def test_zero_gives_all_that_is_retained(log, talk_to):
    fill(log, 3)
    came = talk_to(log, after=0).flow()
    assert seqs(came) == [1, 2, 3]
    assert gaps(came) == []
    assert [message["id"] for message in came[1:]] == ["e1:1", "e1:2", "e1:3"]


@pytest.mark.parametrize("after", ["e1:2", "2", 2])
def test_resume_goes_on_after_the_cursor(log, talk_to, after):
    fill(log, 4)
    assert seqs(talk_to(log, after=after).flow()) == [3, 4]


def test_resume_at_the_head_is_live_and_silent(log, talk_to):
    fill(log, 4)
    talk = talk_to(log, after="e1:4")
    assert seqs(talk.flow()) == []
    talk.append()
    assert seqs(talk.flow()) == [5]


def test_long_resume_is_paced_and_loses_nothing(log, talk_to):
    fill(log, 1000)
    talk = talk_to(log, after=0, config=FeedConfig(outbox=8))
    for _ in range(5):
        talk.read()
    assert talk.wanted() is None
    came = talk.flow()
    assert seqs(came) == list(range(1, 1001))
    assert gaps(came) == []
    assert talk.session.dropped == 0


# losses -----------------------------------------------------------------------------------------
def test_retention_is_told(log, talk_to):
    fill(log, 10)
    log.trim(6)
    came = talk_to(log, after="e1:2").flow()
    assert gaps(came) == [(3, 6, "retention")]
    assert seqs(came) == [7, 8, 9, 10]


def test_retention_of_everything_is_told(log, talk_to):
    fill(log, 10)
    log.trim(10)
    talk = talk_to(log, after="e1:2")
    came = talk.flow()
    assert gaps(came) == [(3, 10, "retention")]
    talk.append()
    assert seqs(talk.flow()) == [11]


def test_retention_that_overtakes_the_catching_up_is_told(log, talk_to):
    fill(log, 20)
    talk = talk_to(log, after=0, config=FeedConfig(outbox=4))
    talk.read()
    log.trim(10)
    came = talk.flow()
    assert seqs(came) == [*range(1, 5), *range(11, 21)]
    assert gaps(came) == [(5, 10, "retention")]


@pytest.mark.parametrize("after", ["e0:2", "e1:11", 11])
def test_a_cursor_of_another_log_is_a_restart(log, talk_to, after):
    fill(log, 10)
    log.trim(3)
    came = talk_to(log, after=after).flow()
    assert gaps(came) == [(1, 3, "restart")]
    assert seqs(came) == list(range(4, 11))


def test_restart_into_an_empty_log(log, talk_to):
    talk = talk_to(log, after="old:77")
    assert gaps(talk.flow()) == [(1, 0, "restart")]
    talk.append()
    assert seqs(talk.flow()) == [1]


def test_restart_while_connected(log, talk_to):
    fill(log, 5)
    talk = talk_to(log, after=0)
    talk.flow()
    log.crash()
    fill(log, 2)
    came = talk.flow()
    assert gaps(came) == [(1, 0, "restart")]
    assert [message["id"] for message in came[1:]] == ["e2:1", "e2:2"]


def test_restart_while_connected_with_more_events_than_before(log, talk_to):
    fill(log, 5)
    talk = talk_to(log, after=0)
    talk.flow()
    log.crash()
    fill(log, 9)
    assert seqs(talk.flow()) == list(range(1, 10))


def test_restart_while_live_is_caught_up_without_loss(log, talk_to):
    talk = talk_to(log, config=FeedConfig(outbox=4))
    talk.flow()
    log.crash()
    fill(log, 50)
    came = talk.flow()
    assert gaps(came) == [(1, 0, "restart")]
    assert seqs(came) == list(range(1, 51))


def test_a_log_that_went_back_is_a_restart(log, talk_to):
    fill(log, 5)
    talk = talk_to(log, after=0)
    talk.flow()
    del log.bodies[3:]
    came = talk.flow()
    assert gaps(came) == [(1, 0, "restart")]
    assert seqs(came) == [1, 2, 3]


@pytest.mark.parametrize("after", ["e0:7", "e1:11", "e1:2", 0])
def test_strict_closes_instead(log, talk_to, after):
    fill(log, 10)
    log.trim(5)
    talk = talk_to(log, after=after, strict=True)
    greet(talk)
    assert talk.session.close.code == 4410
    assert isinstance(talk.session.close.error, ResumeGone)
    assert "e1:6" in talk.session.close.reason
    assert talk.take() is None
    assert talk.wanted() is None


@pytest.mark.parametrize("after", ["e1:5", "e1:10"])
def test_strict_accepts_what_is_there(log, talk_to, after):
    fill(log, 10)
    log.trim(5)
    talk = talk_to(log, after=after, strict=True)
    assert gaps(talk.flow()) == []
    assert talk.session.close is None


# slow subscribers -------------------------------------------------------------------------------
def test_overflow_drops_the_oldest_and_tells_one_gap(log, talk_to):
    talk = talk_to(log, config=FeedConfig(outbox=4))
    talk.append(10)
    came = talk.flow()
    assert [message["type"] for message in came[:2]] == ["session.created", "gap"]
    assert gaps(came) == [(1, 6, "slow_subscriber")]
    assert seqs(came) == [7, 8, 9, 10]
    assert talk.session.dropped == 6


def test_full_for_longer_than_the_grace_closes(log, talk_to):
    talk = talk_to(log, config=FeedConfig(outbox=4, slow_grace_s=10))
    greet(talk)
    talk.append(4)
    talk.now_s = 10.0
    talk.session.tick(now_ns=talk.now_ns)
    assert talk.session.close is None
    talk.now_s = 10.1
    talk.session.tick(now_ns=talk.now_ns)
    assert talk.session.close.code == 4408
    assert isinstance(talk.session.close.error, SubscriberTooSlow)
    assert talk.take() is None


def test_taking_one_event_starts_the_grace_anew(log, talk_to):
    talk = talk_to(log, config=FeedConfig(outbox=4, slow_grace_s=10))
    greet(talk)
    for _ in range(5):
        talk.append(4)
        talk.now_s += 9
        assert talk.take()["type"] == "gap" or talk.now_s == 9
        talk.take()
    assert talk.session.close is None


def test_a_subscriber_that_stops_while_catching_up_is_closed_too(log, talk_to):
    fill(log, 100)
    talk = talk_to(log, after=0, config=FeedConfig(outbox=4))
    talk.read()
    talk.now_s = 11
    talk.session.tick(now_ns=talk.now_ns)
    assert talk.session.close.code == 4408


def test_dropping_what_the_filter_hides_is_no_loss(log, talk_to):
    options = FeedOptions(types=["anticipation"])
    talk = talk_to(log, options=options, config=FeedConfig(outbox=3))
    greet(talk)
    talk.append(5, kind="stream.state")
    talk.append(2, kind="anticipation")
    talk.append(4, kind="stream.state")
    assert talk.session.dropped == 2
    came = talk.flow()
    assert gaps(came) == [(6, 7, "slow_subscriber")]
    assert seqs(came) == []


def test_losses_in_a_row_are_one():
    outbox = Outbox(capacity=2, is_wanted=lambda event: True)
    for loss in (Loss("e", 1, 3, "retention"), Loss("e", 4, 6, "retention")):
        outbox.lose(loss)
    assert outbox.pop() == Loss("e", 1, 6, "retention")
    assert outbox.pop() is None
    outbox.lose(Loss("e", 7, 8, "retention"))
    outbox.lose(Loss("f", 1, 0, "restart"))
    assert outbox.pop() == Loss("f", 1, 0, "restart")


def test_dropping_past_a_restart_keeps_the_restart(log, talk_to):
    talk = talk_to(log, config=FeedConfig(outbox=3))
    greet(talk)
    talk.append(5)
    log.crash()
    fill(log, 2)
    talk.read()
    for _ in range(6):
        talk.take() if talk.wanted() is None else talk.read()
    talk.append(9)
    came = talk.flow()
    told = gaps(came)
    assert told[-1][2] == "restart"
    assert seqs(came)[0] == told[-1][1] + 1


# messages of the client -------------------------------------------------------------------------
def test_update_changes_only_what_is_given(log, talk_to):
    talk = talk_to(log, options=FeedOptions(top_k=3, types=["anticipation"]))
    greet(talk)
    talk.say(type="session.update", id="m1", min_score=0.5, types=None)
    updated = talk.take()
    assert updated["type"] == "session.updated"
    assert updated["in_reply_to"] == "m1"
    assert updated["options"] == {
        "types": None,
        "horizons_s": None,
        "heads": None,
        "top_k": 3,
        "min_score": 0.5,
        "max_rate_hz": None,
        "stats": None,
        "picture": None,
    }


def test_update_holds_for_events_that_wait(log, talk_to):
    talk = talk_to(log)
    greet(talk)
    talk.append(2, kind="stream.state")
    talk.append(1, kind="anticipation")
    talk.say(type="session.update", types=["anticipation"])
    came = talk.take_all()
    assert [message["type"] for message in came] == ["session.updated", "anticipation"]
    assert came[0]["in_reply_to"] is None


def test_resume_within_the_connection(log, talk_to):
    fill(log, 5)
    talk = talk_to(log, after=0)
    talk.flow()
    talk.append(3)
    talk.say(type="feed.resume", id="r", after={"kitchen": "e1:2"})
    came = talk.flow()
    assert (came[0]["type"], came[0]["in_reply_to"]) == ("session.updated", "r")
    assert seqs(came) == [3, 4, 5, 6, 7, 8]
    assert gaps(came) == []


def test_answer_to_a_read_from_before_a_resume_is_ignored(log, talk_to):
    fill(log, 5)
    talk = talk_to(log, after=0)
    read = talk.wanted()
    talk.say(type="feed.resume", after={"kitchen": 4})
    talk.answer(read)
    assert seqs(talk.flow()) == [5]


def test_an_answer_counts_once(log, talk_to):
    fill(log, 5)
    talk = talk_to(log, after=0)
    read = talk.wanted()
    talk.answer(read)
    talk.answer(read)
    assert seqs(talk.flow()) == [1, 2, 3, 4, 5]


def test_a_late_answer_is_ignored(log, talk_to):
    fill(log, 2)
    talk = talk_to(log, after=0)
    read = talk.wanted()
    old = log.read(after_seq=read.after_seq, limit=read.limit)
    fill(log, 3)
    talk.read()
    talk.session.receive_log(read, old, now_ns=0)
    came = talk.flow()
    assert seqs(came) == [1, 2, 3, 4, 5]
    assert gaps(came) == []


def test_a_late_answer_of_a_lost_log_is_ignored(log, talk_to):
    talk = talk_to(log)
    read = talk.wanted()
    old = log.read(after_seq=read.after_seq, limit=read.limit)
    log.crash()
    assert gaps(talk.flow()) == [(1, 0, "restart")]
    talk.session.receive_log(read, old, now_ns=0)
    assert gaps(talk.flow()) == []


def test_strict_resume_within_the_connection_closes(log, talk_to):
    fill(log, 5)
    talk = talk_to(log)
    talk.say(type="feed.resume", after={"kitchen": "e0:2"}, strict=True)
    talk.flow()
    assert talk.session.close.code == 4410


@pytest.mark.parametrize(
    ("after", "code"),
    [
        ({"yard": 3}, "not_found"),
        ({"kitchen": "rubbish"}, "protocol_violation"),
        ({"kitchen": -1}, "protocol_violation"),
        ({"kitchen": 1, "yard": 3}, "not_found"),
    ],
)
def test_a_refused_resume_changes_nothing(log, talk_to, after, code):
    fill(log, 5)
    talk = talk_to(log)
    greet(talk)
    talk.say(type="feed.resume", id="r", after=after)
    came = talk.flow()
    assert [(message["type"], message["code"]) for message in came] == [("error", code)]
    assert came[0]["in_reply_to"] == "r"
    assert talk.session.close is None


def test_malformed_messages_are_answered_and_the_feed_goes_on(log, talk_to):
    talk = talk_to(log)
    greet(talk)
    talk.say(type="session.update", id="m1", top_k=0)
    talk.append()
    error, event = talk.take_all()
    assert (error["type"], error["in_reply_to"], error["retryable"]) == ("error", "m1", False)
    assert "top_k" in error["message"]
    assert event["seq"] == 1


def test_too_many_refused_messages_in_a_row_close(log, talk_to):
    talk = talk_to(log, config=FeedConfig(max_errors=3))
    greet(talk)
    for _ in range(2):
        talk.say(type="dance")
    talk.say(type="session.update")
    for _ in range(3):
        assert talk.session.close is None
        talk.say(type="dance")
    assert talk.session.close.code == 4400
    assert [message["type"] for message in talk.take_all()].count("error") == 5


@pytest.mark.parametrize("text", ["hello", "[1]", "{" * 5, json.dumps({"a": "x" * 20_000})])
def test_what_is_no_message_closes(log, talk_to, text):
    talk = talk_to(log)
    talk.session.receive_text(text, now_ns=0)
    assert talk.session.close.code == 4400
    assert isinstance(talk.session.close.error, ProtocolViolation)
    talk.session.receive_text('{"type":"session.update"}', now_ns=0)
    assert [message["type"] for message in talk.take_all()] == ["session.created"]


def test_binary_closes(log, talk_to):
    talk = talk_to(log)
    talk.session.receive_binary()
    assert talk.session.close.code == 4400


def test_a_client_that_asks_but_does_not_read_is_closed(log, talk_to):
    talk = talk_to(log, config=FeedConfig(max_replies=5))
    for _ in range(5):
        talk.say(type="session.update")
    assert talk.session.close.code == 4408
    assert talk.take() is None


# silence, drain ---------------------------------------------------------------------------------
def test_heartbeat_after_silence_only(log, talk_to):
    fill(log, 7)
    talk = talk_to(log)
    greet(talk)
    talk.now_s = 4.9
    assert talk.take() is None
    assert talk.session.silence_left_s(now_ns=talk.now_ns) == pytest.approx(0.1)
    talk.now_s = 5.0
    beat = talk.take()
    assert (beat["type"], beat["stream"], beat["head_seq"]) == ("heartbeat", "kitchen", 7)
    assert talk.take() is None
    talk.now_s = 9.0
    talk.append()
    assert talk.take()["seq"] == 8
    talk.now_s = 13.9
    assert talk.take() is None
    talk.now_s = 14.0
    assert talk.take()["head_seq"] == 8


def test_drain_says_where_to_resume(log, talk_to):
    fill(log, 3)
    talk = talk_to(log, after=0)
    talk.read()
    talk.take(), talk.take(), talk.take()
    talk.session.drain(reason="update", retry_after_s=2.0)
    talk.session.drain(reason="again", retry_after_s=2.0)
    (closing,) = talk.take_all()
    assert closing["type"] == "session.closing"
    assert closing["resume_after"] == {"kitchen": "e1:2"}
    assert (talk.session.close.code, talk.session.close.reason) == (1012, "update")
    assert talk.session.close.error is None
    assert seqs(talk_to(log, after=closing["resume_after"]["kitchen"]).flow()) == [3]


def test_drain_after_a_gap_resumes_behind_it(log, talk_to):
    talk = talk_to(log, config=FeedConfig(outbox=2))
    greet(talk)
    talk.append(5)
    assert talk.take()["to_seq"] == 3
    talk.session.drain(reason="update", retry_after_s=2.0)
    assert talk.take_all()[-1]["resume_after"] == {"kitchen": "e1:3"}


def test_drain_before_anything_was_sent_keeps_the_clients_cursor(log, talk_to):
    fill(log, 3)
    talk = talk_to(log, after="e0:9")
    talk.session.drain(reason="update", retry_after_s=2.0)
    assert talk.take_all()[-1]["resume_after"] == {"kitchen": "e0:9"}


# in general -------------------------------------------------------------------------------------
def test_every_transient_message_is_in_the_schema(log, talk_to):
    fill(log, 9)
    log.trim(2)
    talk = talk_to(log, after=0)
    talk.say(type="session.update")
    talk.say(type="dance")
    came = talk.flow()
    talk.now_s = 60
    came.append(talk.take())
    talk.session.drain(reason="update", retry_after_s=1.0)
    came += talk.take_all()
    kinds = {server_message.validate_python(each).type for each in came if "seq" not in each}
    assert kinds == {
        "session.created",
        "session.updated",
        "error",
        "gap",
        "heartbeat",
        "session.closing",
    }


def test_several_streams_take_turns(talk_to, plain_log):
    talk = talk_to(plain_log())
    session = talk.session
    greet(talk)
    logs = {"yard": plain_log(), "door": plain_log()}
    for each in logs.values():
        fill(each, 2)
    both = type(session)(config=FeedConfig(), renderer=session._renderer)
    slices = {name: each.read(after_seq=0, limit=9) for name, each in logs.items()}
    both.open(slices, now_ns=0)
    for name in slices:
        logs[name].append()
        logs[name].append()
        read = both.wanted(name)
        both.receive_log(read, logs[name].read(after_seq=read.after_seq, limit=9), now_ns=0)
    ids = [both.next_message(now_ns=0).id for _ in range(5)][1:]
    assert ids == ["e1:3", "e1:3", "e1:4", "e1:4"]
