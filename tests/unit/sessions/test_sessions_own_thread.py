"""Calls that hang keep nobody else waiting."""

from __future__ import annotations

import asyncio
import threading

import pytest

from streamer.errors import SourceUnavailable
from streamer.sessions.own_thread import in_own_thread

pytestmark = pytest.mark.unit


async def test_answers_and_errors_come_back() -> None:
    assert await in_own_thread(lambda: 7, name="x") == 7

    def fail() -> None:
        raise SourceUnavailable("no such host")

    with pytest.raises(SourceUnavailable, match="no such host"):
        await in_own_thread(fail, name="x")


async def test_hanging_calls_keep_nobody_waiting() -> None:
    release = threading.Event()
    hanging = [
        asyncio.ensure_future(in_own_thread(lambda: release.wait(30), name="hangs"))
        for _ in range(64)
    ]
    async with asyncio.timeout(10):
        assert await asyncio.to_thread(lambda: "the pool is free") == "the pool is free"
        assert await in_own_thread(lambda: 1, name="x") == 1
    hanging[0].cancel()
    await asyncio.wait({hanging[0]})
    assert hanging[0].cancelled()
    release.set()
    assert await asyncio.gather(*hanging[1:]) == [True] * 63
