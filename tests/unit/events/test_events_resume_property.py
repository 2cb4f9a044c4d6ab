"""Whatever happens, the client's sequence is whole: each event once, or told as lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.events.config import FeedConfig
from streamer.events.schema import FeedOptions

pytestmark = pytest.mark.unit

GRACE_S = 10
counts = st.integers(1, 7)


class Client:
    """Believes only what it is sent; fails at the first hole, repetition or false alarm."""

    def __init__(self, log):
        self.log = log
        self.cursor = "0"
        self.position()

    def position(self):
        """A new connection (or resume) starts at the saved cursor."""
        epoch, _, seq = self.cursor.rpartition(":")
        self.epoch, self.last = epoch or None, int(seq)  # a bare number means any epoch

    def hear(self, message):
        if message["type"] == "gap":
            self.hear_gap(message)
        elif "seq" in message:
            epoch = message["id"].split(":")[0]
            self.epoch = self.epoch or epoch
            assert (epoch, message["seq"]) == (self.epoch, self.last + 1)
            self.last = message["seq"]
            self.cursor = message["id"]

    def hear_gap(self, gap):
        if gap["reason"] == "restart":
            assert gap["from_seq"] == 1
            assert self.epoch != self.log.epoch
            self.epoch = None
        else:
            assert gap["from_seq"] == self.last + 1
            assert gap["to_seq"] >= gap["from_seq"]
        if gap["reason"] == "retention" and self.epoch == self.log.epoch:
            assert gap["to_seq"] < self.log.first_seq
        self.last = gap["to_seq"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), counts),
        st.tuples(st.just("read"), counts),
        st.tuples(st.just("take"), counts),
        st.tuples(st.just("trim"), counts),
        st.tuples(st.sampled_from(["reconnect", "resume", "drain", "late", "crash"]), counts),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(steps=steps, outbox=st.integers(1, 6))
def test_any_history_of_one_client_is_whole(steps, outbox, plain_log, talk_to):
    log = plain_log()
    client = Client(log)
    config = FeedConfig(outbox=outbox, read_limit=4)

    def connect():
        client.position()
        return talk_to(log, after=client.cursor, config=config)

    talk, held = connect(), None
    for action, count in steps:
        if action == "append":
            for _ in range(count):
                log.append()
        elif action == "read":
            for _ in range(count):
                talk.read()
        elif action == "take":
            for _ in range(count):
                if (message := talk.take()) is not None:
                    client.hear(message)
        elif action == "trim":
            log.trim(count)
        elif action == "crash":
            log.crash()
        elif action == "late":
            if held is not None and talk.wanted() is not None:
                talk.answer(held)
            held = talk.wanted()
        elif action == "resume":
            talk.say(type="feed.resume", after={"kitchen": client.cursor})
            client.position()
        else:
            if action == "drain":
                talk.session.drain(reason="update", retry_after_s=1)
                client.cursor = talk.take_all()[-1]["resume_after"]["kitchen"]
            talk, held = connect(), None
    for message in talk.flow():
        client.hear(message)
    assert client.last == log.head_seq
    assert client.epoch in (None, log.epoch)
    assert talk.session.close is None


class Reference:
    """A live subscriber's outbox, the slow and obvious way."""

    def __init__(self, capacity, wanted):
        self.capacity, self.wanted = capacity, wanted
        self.waiting, self.lost = [], []
        self.full_since = None

    def append(self, seq, kind, now_s):
        self.waiting.append((seq, kind))
        if len(self.waiting) > self.capacity:
            dropped, of_kind = self.waiting.pop(0)
            if of_kind in self.wanted:
                self.lost.append(dropped)
        if len(self.waiting) == self.capacity and self.full_since is None:
            self.full_since = now_s

    def take(self):
        if self.lost:
            told, self.lost = ("gap", self.lost[0], self.lost[-1]), []
            return told
        while self.waiting:
            self.full_since = None
            seq, kind = self.waiting.pop(0)
            if kind in self.wanted:
                return ("event", seq, seq)
        return None

    def is_too_slow(self, now_s):
        return self.full_since is not None and now_s - self.full_since > GRACE_S


def told(message):
    if message is None:
        return None
    if message["type"] == "gap":
        assert message["reason"] == "slow_subscriber"
        return ("gap", message["from_seq"], message["to_seq"])
    return ("event", message["seq"], message["seq"])


KINDS = ("anticipation", "stream.state")


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(KINDS), counts),
            st.tuples(st.just("take"), counts),
            st.tuples(st.just("wait"), counts),
        ),
        max_size=50,
    ),
    outbox=st.integers(1, 5),
    types=st.sampled_from([None, ("anticipation",), ()]),
)
def test_slow_subscriber_agrees_with_the_reference(steps, outbox, types, plain_log, talk_to):
    config = FeedConfig(outbox=outbox, slow_grace_s=GRACE_S, heartbeat_s=3600)
    talk = talk_to(plain_log(), options=FeedOptions(types=types), config=config)
    assert talk.take()["type"] == "session.created"
    reference = Reference(outbox, KINDS if types is None else types)
    for action, count in steps:
        for _ in range(count):
            if action == "take":
                assert told(talk.take()) == reference.take()
            elif action == "wait":
                talk.now_s += 1
                talk.session.tick(now_ns=talk.now_ns)
            else:
                talk.append(kind=action)
                reference.append(talk.log.head_seq, action, talk.now_s)
        too_slow = reference.is_too_slow(talk.now_s)
        assert (talk.session.close is not None) == too_slow
        if too_slow:
            assert talk.session.close.code == 4408
            return
    while (expected := reference.take()) is not None:
        assert told(talk.take()) == expected
    assert talk.take() is None
