"""A log as plain lists, and a session that talks to it without a socket."""

from __future__ import annotations

import itertools
import json

import pytest

from streamer.events.config import FeedConfig
from streamer.events.cursor import parse_cursor
from streamer.events.render import Renderer
from streamer.events.session import FeedSession
from streamer.events.ulid import Ulids
from streamer.store.protocol import LogEntry, LogSlice

STREAM = "kitchen"
WALL_NS = 1_796_115_603_412_345_678


class PlainLog:
    """The log of one stream: the obvious implementation."""

    def __init__(self):
        self._epochs = (f"e{n}" for n in itertools.count(1))
        self.crash()

    def crash(self):
        """Lose everything."""
        self.epoch, self.bodies, self.first_seq = next(self._epochs), [], 1

    @property
    def head_seq(self):
        return len(self.bodies)

    def append(self, kind="stream.state"):
        self.bodies.append(json.dumps({"type": kind, "stream": STREAM}).encode())

    def trim(self, count):
        """Let the oldest events age out."""
        self.first_seq = min(self.first_seq + count, self.head_seq + 1)

    def read(self, *, after_seq, limit):
        begin = max(after_seq + 1, self.first_seq)
        numbers = range(begin, self.head_seq + 1)[:limit]
        return LogSlice(
            epoch=self.epoch,
            first_seq=self.first_seq,
            head_seq=self.head_seq,
            entries=tuple(LogEntry(seq=n, body=self.bodies[n - 1]) for n in numbers),
        )


class Talk:
    """One connection: the skin's part played by hand, the time too."""

    def __init__(self, log, *, after=None, strict=False, options=None, config=None, now_s=0.0):
        self.log = log
        self.now_s = now_s
        self.session = FeedSession(
            config=config or FeedConfig(),
            renderer=Renderer(),
            options=options,
            wall=lambda: WALL_NS,
            ulids=Ulids(wall=lambda: WALL_NS),
        )
        cursors = None if after is None else {STREAM: parse_cursor(after)}
        logs = {STREAM: log.read(after_seq=0, limit=0)}
        self.session.open(logs, after=cursors, strict=strict, now_ns=self.now_ns)

    @property
    def now_ns(self):
        return int(self.now_s * 1e9)

    def append(self, count=1, kind="stream.state"):
        """Append and read what is new, as a live skin does."""
        for _ in range(count):
            self.log.append(kind)
            self.read()

    def wanted(self):
        return self.session.wanted(STREAM)

    def answer(self, read):
        log = self.log.read(after_seq=read.after_seq, limit=read.limit)
        self.session.receive_log(read, log, now_ns=self.now_ns)

    def read(self):
        read = self.wanted()
        if read is not None:
            self.answer(read)
        return read

    def say(self, **message):
        self.session.receive_text(json.dumps(message), now_ns=self.now_ns)

    def take(self):
        """The next message as JSON, or None."""
        message = self.session.next_message(now_ns=self.now_ns)
        if message is None:
            return None
        content = json.loads(message.data)
        assert (content["type"], content["id"]) == (message.type, message.id)
        assert message.is_retained == ("seq" in content)
        return content

    def take_all(self):
        return list(iter(self.take, None))

    def flow(self):
        """Read and take until nothing moves; what came."""
        came = []
        while True:
            before = self.wanted()
            self.read()
            new = self.take_all()
            came += new
            if not new and self.wanted() == before:
                return came


@pytest.fixture
def log():
    return PlainLog()


@pytest.fixture(scope="session")
def talk_to():
    return Talk


@pytest.fixture(scope="session")
def plain_log():
    """The class, for tests that make many logs."""
    return PlainLog
