"""Streams that come and go, pauses, the rate limit and figures."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.clock import format_utc
from streamer.errors import NotFound
from streamer.events.config import FeedConfig
from streamer.events.cursor import parse_cursor
from streamer.events.pace import Pace
from streamer.events.render import Renderer
from streamer.events.schema import FeedOptions, StreamStats
from streamer.events.session import FeedSession

pytestmark = pytest.mark.unit

GONE = NotFound("There is no such stream.")


class Many:
    """A session of several streams, by hand."""

    def __init__(self, logs, **config):
        self.logs = logs
        self.session = FeedSession(
            config=FeedConfig(**config), renderer=Renderer(), can_change=True
        )
        self.session.open({"a": self._head("a")}, now_ns=0)
        assert self.take()[0]["type"] == "session.created"

    def _head(self, stream):
        return self.logs[stream].read(after_seq=0, limit=0)

    def say(self, **message):
        self.session.receive_text(json.dumps(message), now_ns=0)

    def open_all(self):
        for stream in list(self.session.opening):
            if stream in self.logs:
                self.session.join(stream, self._head(stream))
            else:
                self.session.lose(stream, GONE)

    def read(self):
        for stream in self.session.streams:
            read = self.session.wanted(stream)
            if read is not None:
                log = self.logs[stream].read(after_seq=read.after_seq, limit=read.limit)
                self.session.receive_log(read, log, now_ns=0)

    def take(self):
        messages = iter(lambda: self.session.next_message(now_ns=0), None)
        return [json.loads(message.data) for message in messages]


@pytest.fixture
def many(plain_log):
    return Many({stream: plain_log() for stream in "abc"}, max_streams=3)


def _told(messages):
    return [(m["type"], m.get("in_reply_to"), m.get("streams", m.get("code"))) for m in messages]


def test_an_update_is_answered_when_its_streams_are_there(many):
    many.say(type="session.update", id="u1", streams=["a", "b"], top_k=1)
    many.say(type="session.update", id="u2", top_k=2)
    assert many.session.opening == ["b"]
    assert many.take() == []
    many.open_all()
    assert _told(many.take()) == [
        ("session.updated", "u1", ["a", "b"]),
        ("session.updated", "u2", ["a", "b"]),
    ]


@pytest.mark.parametrize("streams", [["none", "b"], ["b", "none"], ["b", "none", "c"]])
def test_an_update_with_a_stream_that_is_not_there_changes_nothing(many, streams):
    many.say(type="session.update", id="u", streams=streams, top_k=3)
    many.say(type="session.update", id="v", max_rate_hz=1)
    many.open_all()
    assert _told(many.take()) == [("error", "u", "not_found"), ("session.updated", "v", ["a"])]
    assert many.session.streams == ("a",)
    assert many.session.followed == {"a"}
    assert (many.session.options.top_k, many.session.options.max_rate_hz) == (None, 1.0)
    many.logs["a"].append()
    many.read()
    assert [message["seq"] for message in many.take()] == [1]


def test_streams_stay_until_the_new_ones_are_there(many):
    many.say(type="session.update", id="u", streams=["b", "c"])
    many.session.join("c", many.logs["c"].read(after_seq=0, limit=0))
    assert many.session.followed == {"a", "b", "c"}
    many.logs["a"].append()
    many.read()
    assert [message["stream"] for message in many.take()] == ["kitchen"]
    many.open_all()
    assert _told(many.take()) == [("session.updated", "u", ["c", "b"])]


def test_messages_that_wait_for_streams_are_bounded(many):
    many.say(type="session.update", streams=["b"])
    for _ in range(64):
        many.say(type="feed.pause")
    assert many.session.close is None
    many.say(type="feed.pause")
    assert many.session.close.code == 4408


def test_one_that_is_not_wanted_any_more_does_not_join(many):
    many.say(type="session.update", id="u1", streams=["b"])
    many.say(type="session.update", id="u2", streams=["a"])
    many.session.join("b", many.logs["b"].read(after_seq=0, limit=0))
    many.open_all()
    assert many.session.streams == ("a",)
    assert [each[1] for each in _told(many.take())] == ["u1", "u2"]


def test_a_stream_that_left_is_silent(many):
    many.logs["a"].append()
    read = many.session.wanted("a")
    many.say(type="session.update", streams=["b"])
    many.open_all()
    many.take()
    log = many.logs["a"].read(after_seq=read.after_seq, limit=read.limit)
    many.session.receive_log(read, log, now_ns=0)
    assert many.session.wanted("a") is None
    assert many.take() == []
    many.say(type="feed.resume", id="r", after={"a": 0})
    assert _told(many.take()) == [("error", "r", "not_found")]


def test_a_stream_that_is_lost_is_told(many):
    many.session.lose("a", GONE)
    many.session.lose("a", GONE)
    assert _told(many.take()) == [("error", None, "not_found")]
    assert many.session.streams == ()
    assert many.session.next_message(now_ns=int(60e9)) is None
    assert many.session.silence_left_s(now_ns=int(60e9)) > 0


def test_too_many_streams(many):
    many.say(type="session.update", id="u", streams=["a", "b", "c", "d"])
    assert _told(many.take()) == [("error", "u", "protocol_violation")]


def test_one_stream_cannot_be_exchanged(talk_to, log):
    talk = talk_to(log)
    talk.take()
    talk.say(type="session.update", id="u", streams=["hall"])
    assert talk.take()["code"] == "protocol_violation"


def test_figures_go_to_those_who_want_them_and_keep_up(talk_to, log):
    stats = StreamStats(stream="kitchen", head_seq=3, anticipations=0, latency_ms={})
    talk = talk_to(log)
    talk.take()
    talk.session.tell(stats)
    assert talk.take() is None
    talk.say(type="session.update", stats=True)
    talk.session.tell(stats)  # an answer still waits
    assert talk.take()["type"] == "session.updated"
    assert talk.take() is None
    talk.session.tell(stats)
    told = talk.take()
    assert (told["type"], told["stream"], told["head_seq"]) == ("stats", "kitchen", 3)
    talk.session.tell(stats.model_copy(update={"stream": "hall"}))
    assert talk.take() is None


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["append", "read", "take", "pause", "continue", "resume", "trim"]),
            st.integers(1, 6),
        ),
        max_size=40,
    )
)
def test_pauses_lose_nothing_that_is_retained(steps, talk_to, plain_log):
    log = plain_log()
    talk = talk_to(log, after="0", config=FeedConfig(outbox=4, read_limit=3, max_replies=200))
    last, cursor, paused = 0, "0", False

    def hear(message):
        nonlocal last, cursor
        if message["type"] == "gap":
            assert message["from_seq"] == last + 1
            assert message["reason"] != "retention" or message["to_seq"] < log.first_seq
            last = message["to_seq"]
        elif "seq" in message:
            assert message["seq"] == last + 1
            last, cursor = message["seq"], message["id"]

    def take():
        message = talk.take()
        if message is not None:
            assert not (paused and ("seq" in message or message["type"] == "gap"))
            hear(message)

    for action, count in steps:
        if action in ("pause", "continue"):
            paused = action == "pause"
            talk.say(type=f"feed.{action}")
            continue
        for _ in range(count):
            match action:
                case "append":
                    log.append()
                case "read":
                    talk.read()
                case "take":
                    take()
        if action == "trim":
            log.trim(count)
        elif action == "resume":
            talk.say(type="feed.resume", after={"kitchen": f"{log.epoch}:{last}"})
    paused = False
    talk.say(type="feed.continue")
    for message in talk.flow():
        hear(message)
    assert last == log.head_seq


def test_the_smallest_rate_lets_the_first_event_pass_and_no_other():
    pace = Pace()
    assert pace.passes(0, rate_hz=5e-324)
    assert not pace.passes(10**15, rate_hz=5e-324)


def _passed(times_s, *, rate_hz):
    pace = Pace()
    return [t for t in times_s if pace.passes(int(t * 1e9), rate_hz=rate_hz)]


def test_a_stream_at_the_wanted_rate_passes_whole():
    times = [n + jitter for n, jitter in enumerate([0, -0.1, 0.35, -0.35, 0.1, 0, -0.1])]
    assert _passed(times, rate_hz=1) == times


def test_a_faster_stream_is_thinned_evenly():
    assert _passed([n / 2 for n in range(9)], rate_hz=1) == [0, 1, 2, 3, 4]
    assert _passed(range(11), rate_hz=0.2) == [0, 3, 8]


def test_what_has_no_time_passes_and_a_clock_may_be_set_back():
    pace = Pace()
    assert pace.passes(100 * 10**9, rate_hz=1)
    assert pace.passes(None, rate_hz=1)
    assert not pace.passes(int(100.1e9), rate_hz=1)
    assert pace.passes(50 * 10**9, rate_hz=1)
    assert not pace.passes(int(50.1e9), rate_hz=1)


@given(
    gaps=st.lists(st.integers(0, 3_000), max_size=60),
    rate_hz=st.floats(0.2, 20),
)
def test_never_more_than_the_rate(gaps, rate_hz):
    times_s, now = [], 0
    for gap in gaps:
        now += gap
        times_s.append(now / 1000)
    passed = _passed(times_s, rate_hz=rate_hz)
    span_s = passed[-1] - passed[0] if passed else 0
    assert len(passed) <= span_s * rate_hz + 1.41
    if times_s:
        assert passed[0] == times_s[0]


def test_rate_limits_anticipations_alone_and_starts_anew_with_a_resume(talk_to, log):
    talk = talk_to(log, options=FeedOptions(max_rate_hz=0.5))
    talk.take()
    for second in range(6):
        kind = "stream.state" if second == 3 else "anticipation"
        time = format_utc(1_800_000_000_000_000_000 + second * 10**9)
        log.bodies.append(json.dumps({"type": kind, "time": time}).encode())
    seen = [message["seq"] for message in talk.flow()]
    assert seen == [1, 3, 4, 5]
    talk.say(type="feed.resume", after={"kitchen": 1})
    assert [m["seq"] for m in talk.flow() if "seq" in m] == [2, 4, 5]
    assert talk.session.cursors == {"kitchen": str(parse_cursor(f"{log.epoch}:6"))}
