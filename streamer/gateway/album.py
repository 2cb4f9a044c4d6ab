"""Latent pictures of one stream, looked up once per anticipation for all feeds of this process.

A picture is made behind its event's back, so it is usually there some milliseconds after it. One
that is not there within a second is not waited for.
"""

from __future__ import annotations

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Sequence
from weakref import WeakValueDictionary

from streamer.clock import parse_utc
from streamer.errors import CapacityError, NotFound
from streamer.events.panels import Panels, unpack_panels
from streamer.events.schema import LatentPanel
from streamer.events.showcase import Shown
from streamer.gateway.png import encode_png
from streamer.store.protocol import Store

__all__ = ["Album"]

_WAITS_S = (0.02, 0.08, 0.2, 0.6)
_KEPT = 8


class Album:
    """Not thread-safe: it belongs to the event loop.

    Args:
        store: where pictures are.
        stream: whose.
        waits_s: before each look into the store.
    """

    def __init__(self, store: Store, stream: str, *, waits_s: Sequence[float] = _WAITS_S) -> None:
        self._store = store
        self._stream = stream
        self._waits_s = waits_s
        self._looking: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()
        """One look at a time for each picture; a lock lasts as long as somebody holds it."""
        self._turn = asyncio.Lock()
        """One question at a time to the store."""
        self._found: OrderedDict[tuple[int, str], Shown | None] = OrderedDict()

    async def picture(self, *, seq: int, capture_time: str) -> Shown | None:
        """The picture of that anticipation; None when there is none. Safe to cancel."""
        key = (seq, capture_time)
        lock = self._looking.setdefault(key, asyncio.Lock())
        async with lock:
            if key not in self._found:
                self._found[key] = await self._look(seq, capture_time)
                if len(self._found) > _KEPT:
                    self._found.popitem(last=False)
            return self._found[key]

    async def _look(self, seq: int, capture_time: str) -> Shown | None:
        for wait_s in self._waits_s:
            await asyncio.sleep(wait_s)
            async with self._turn:
                panels = await self._panels(capture_time)
            # A file that is played again has the same capture times: the number tells them apart.
            if panels is not None and panels.seq == seq:
                return Shown(
                    stream=self._stream,
                    seq=seq,
                    capture_time=capture_time,
                    panels=await asyncio.to_thread(_images, panels),
                )
        return None

    async def _panels(self, capture_time: str) -> Panels | None:
        try:
            at_ns = parse_utc(capture_time)
            picture = await self._store.get_picture(self._stream, "latent", at_ns=at_ns)
            return unpack_panels(picture.body)
        except (NotFound, CapacityError, ValueError):  # the last: of another version of the service
            return None


def _images(panels: Panels) -> tuple[LatentPanel, ...]:
    pngs = [encode_png(each, rows=panels.rows, columns=panels.columns) for each in panels.each()]
    return tuple(
        LatentPanel(
            horizon_s=horizon_s,
            png="data:image/png;base64," + base64.b64encode(png).decode(),
        )
        for horizon_s, png in zip(panels.horizons_s, pngs, strict=True)
    )
