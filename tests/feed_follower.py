"""A plain WebSocket client that never gives up: whatever ends its socket, it comes back after the
last event it has."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import websockets

__all__ = ["Follower", "following"]

Event = dict[str, Any]


class Follower:
    """Remembers every retained event with the monotonic second at which it came."""

    def __init__(self, base_url: str, stream: str) -> None:
        self.events: list[Event] = []
        self.at: list[float] = []
        self.gaps: list[Event] = []
        self.ends: list[str] = []
        """How each socket before the present one ended."""
        self.first = "0"
        """Cursor of the first connection."""
        self._url = f"{base_url.replace('http', 'ws', 1)}/v1/streams/{stream}/feed"
        self._changed = asyncio.Condition()

    @property
    def seqs(self) -> list[int]:
        return [event["seq"] for event in self.events]

    @property
    def anticipations(self) -> list[Event]:
        return [event for event in self.events if event["type"] == "anticipation"]

    async def wait_for(self, condition: Callable[[], Any], *, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(condition)
        except TimeoutError:
            told = [(e["seq"], e["type"], e.get("state"), e.get("reason")) for e in self.events]
            raise AssertionError(f"not within {timeout_s:g} s: {told[-12:]} {self.ends}") from None

    async def wait_more(self, count: int, *, timeout_s: float) -> float:
        """Wait for so many more anticipations; seconds until the first of them."""
        began, have = time.monotonic(), len(self.anticipations)
        await self.wait_for(lambda: len(self.anticipations) >= have + count, timeout_s=timeout_s)
        fresh = self.anticipations[have]["seq"]
        return self.at[self.seqs.index(fresh)] - began

    def longest_silence_s(self, *, since: float) -> float:
        """Longest time between two events in a row that ended after this monotonic second."""
        return max(b - max(a, since) for a, b in pairwise(self.at) if b > since)

    async def run(self) -> None:
        while True:
            after = self.events[-1]["id"] if self.events else self.first
            try:
                async with websockets.connect(
                    f"{self._url}?after={after}",
                    subprotocols=[websockets.Subprotocol("streamer.v1")],
                    open_timeout=2,
                    close_timeout=1,
                ) as socket:
                    async for message in socket:
                        await self._take(json.loads(message))
                    self.ends.append("1000")
            except websockets.ConnectionClosedError as error:
                self.ends.append(str(error.rcvd.code) if error.rcvd else "1006")
            except (OSError, TimeoutError, websockets.WebSocketException) as error:
                self.ends.append(repr(error))
            await asyncio.sleep(0.1)

    async def _take(self, message: Event) -> None:
        async with self._changed:
            if message["type"] == "gap":
                self.gaps.append(message)
            if "seq" in message:
                self.at.append(time.monotonic())
                self.events.append(message)
            self._changed.notify_all()


@asynccontextmanager
async def following(base_url: str, stream: str) -> AsyncIterator[Follower]:
    """A follower from the log's start, which runs beside the block; at its end, the sequence
    numbers must be without hole and repeat."""
    follower = Follower(base_url, stream)
    running = asyncio.ensure_future(follower.run())
    try:
        yield follower
    finally:
        running.cancel()
        await asyncio.wait({running})
    assert follower.seqs == list(range(1, len(follower.seqs) + 1))
    assert follower.gaps == []
