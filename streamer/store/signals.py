"""Waiting for something to happen under a name, without polling, on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from weakref import WeakValueDictionary

__all__ = ["Signals"]


class Signals:
    """Named wake-ups. A name costs nothing while nobody waits for it."""

    def __init__(self) -> None:
        self._events: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()

    def fire(self, name: str) -> None:
        """Wake all who wait for this name now."""
        event = self._events.pop(name, None)
        if event is not None:
            event.set()

    async def wait_until(self, name: str, is_done: Callable[[], bool], *, timeout_s: float) -> None:
        """Return once `is_done` (asked now and after each `fire`), or at the timeout.

        Cancellation: safe.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not is_done():
                    event = self._events.setdefault(name, asyncio.Event())
                    await event.wait()
