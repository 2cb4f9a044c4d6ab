"""The tasks of one feed, over a line that does what a test asks for."""

from __future__ import annotations

import asyncio

import pytest

from streamer.errors import SubscriberTooSlow
from streamer.events.config import FeedConfig
from streamer.events.schema import FeedOptions
from streamer.gateway.auth import Grant
from streamer.gateway.feed_query import FeedQuery
from streamer.gateway.feed_run import FeedRun, opened_session

pytestmark = pytest.mark.unit


class _StuckLine:
    """Takes nothing, and lets go of a message only when `let_go` is set."""

    def __init__(self):
        self.is_cancelled = asyncio.Event()
        self.let_go = asyncio.Event()
        self._said = asyncio.Queue()
        self._has_given = False

    async def send(self, message):
        try:
            await asyncio.Event().wait()
        finally:
            self.is_cancelled.set()
            await self.let_go.wait()

    async def receive(self):
        if self._has_given:
            self._said.task_done()  # who asks for the next one is done with the one before
        self._has_given = True
        return await self._said.get()

    def say(self, data):
        self._said.put_nowait(data)

    async def until_heard(self):
        await self._said.join()


async def test_a_client_may_speak_while_its_stuck_send_is_given_up(make_gateway):
    gateway = make_gateway(feed=FeedConfig(slow_grace_s=0.05))
    await gateway.stream()
    hub, line = gateway.app.state.hub, _StuckLine()
    query = FeedQuery(streams=("cam",), after={}, strict=False, options=FeedOptions())
    run = FeedRun(
        await opened_session(query, backend=gateway.backend, hub=hub),
        line,
        backend=gateway.backend,
        hub=hub,
        gate=gateway.app.state.gate,
        grant=Grant(),
    )
    async with asyncio.timeout(5):
        running = asyncio.ensure_future(run.run())
        await line.is_cancelled.wait()
        line.say(b"binary, which closes the session")
        line.say("one more")
        await line.until_heard()
        line.let_go.set()
        with pytest.raises(SubscriberTooSlow):
            await running
