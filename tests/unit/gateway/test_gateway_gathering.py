"""Several questions at once, in order, never more than so many."""

from __future__ import annotations

import asyncio

import pytest

from streamer.gateway.gathering import asked_of_each
from streamer.gateway.views import stream_views

pytestmark = pytest.mark.unit


class Desk:
    """Answers once `wanted` wait."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.waiting = 0
        self.most = 0
        self.go = asyncio.Event()

    async def ask(self, number):
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting == self.wanted:
            self.go.set()
        await self.go.wait()
        self.waiting -= 1
        return number * 10


async def test_answers_come_in_order_and_at_most_so_many_at_once():
    desk = Desk(wanted=3)
    async with asyncio.timeout(5):
        answers = await asked_of_each(range(8), desk.ask, at_once=3)
    assert answers == [n * 10 for n in range(8)]
    assert desk.most == 3
    assert await asked_of_each([], desk.ask) == []


async def test_streams_are_looked_up_together(gateway, monkeypatch):
    for number in range(5):
        await gateway.stream(f"cam{number}")
    desk, read = Desk(wanted=5), gateway.store.read

    async def counted(stream, **options):
        await desk.ask(0)
        return await read(stream, **options)

    monkeypatch.setattr(gateway.store, "read", counted)
    async with asyncio.timeout(5):
        views = await stream_views(gateway.store, await gateway.store.list_streams())
    assert [view.id for view in views] == [f"cam{number}" for number in range(5)]
