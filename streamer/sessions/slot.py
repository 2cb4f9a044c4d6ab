"""Where clips wait for the model. Each slot is bounded and its policy is its name.

Both are filled from the decode thread and emptied on the event loop: `put` and `close` are called
in that thread, `get` on the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from streamer.errors import ConfigError
from streamer.records import Clip

__all__ = ["Blocking", "ClipSlot", "Latest", "call_soon"]

_STOP_POLL_S = 0.1


class ClipSlot(Protocol):
    """The seam between the decode thread and the event loop."""

    superseded: int
    """Clips that were thrown away for a newer one."""

    def put(self, clip: Clip) -> None:
        """Hand over one clip; called in the decode thread."""

    def close(self) -> None:
        """No more clips come; called in the decode thread, after the last `put`."""

    async def get(self) -> Clip | None:
        """Next clip, or None after `close`. Cancellation is safe."""


class Latest:
    """Holds one clip; a newer one takes its place and the loss is counted. Never blocks."""

    def __init__(self) -> None:
        self.superseded = 0
        self._loop = asyncio.get_running_loop()
        # Exchanged in the thread, not by calls on the loop: those would pile up while it is stuck.
        self._exchange = threading.Lock()
        self._clip: Clip | None = None
        self._is_closed = False
        self._changed = asyncio.Event()

    def put(self, clip: Clip) -> None:
        with self._exchange:
            self.superseded += self._clip is not None
            self._clip = clip
        call_soon(self._loop, self._changed.set)

    def close(self) -> None:
        self._is_closed = True
        call_soon(self._loop, self._changed.set)

    async def get(self) -> Clip | None:
        while self._clip is None and not self._is_closed:
            self._changed.clear()
            if self._clip is None and not self._is_closed:
                await self._changed.wait()
        with self._exchange:
            clip, self._clip = self._clip, None
        return clip


class Blocking:
    """Holds `size` clips; `put` waits for room, or until `stop` is set. Loses nothing."""

    def __init__(self, size: int, *, stop: threading.Event) -> None:
        if size < 1:
            raise ConfigError(f"A blocking slot needs room for at least one clip, not {size}.")
        self.superseded = 0
        self._loop = asyncio.get_running_loop()
        self._stop = stop
        self._room = threading.Semaphore(size)
        self._clips: deque[Clip] = deque()
        self._is_closed = False
        self._changed = asyncio.Event()

    def put(self, clip: Clip) -> None:
        while not self._room.acquire(timeout=_STOP_POLL_S):
            if self._stop.is_set():
                return
        call_soon(self._loop, lambda: self._keep(clip))

    def close(self) -> None:
        call_soon(self._loop, self._close)

    async def get(self) -> Clip | None:
        while not self._clips and not self._is_closed:
            self._changed.clear()
            await self._changed.wait()
        if not self._clips:
            return None
        self._room.release()
        return self._clips.popleft()

    def _keep(self, clip: Clip) -> None:
        self._clips.append(clip)
        self._changed.set()

    def _close(self) -> None:
        self._is_closed = True
        self._changed.set()


def call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call on the loop from the decode thread, which may outlive it: then nobody listens."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call)
