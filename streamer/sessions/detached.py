"""A pipeline whose events go to whoever asked, instead of into the service's log."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from streamer.errors import ConfigError
from streamer.records import AnticipationReply, AnticipationRequest, Clip, Encoded
from streamer.sessions.pipeline import Pipeline
from streamer.store.protocol import Store

__all__ = ["DetachedPipeline"]


class DetachedPipeline:
    """A `Pipeline` that appends to a store of its own, and waits for its reader.

    Args:
        pipeline: makes the events; its own log gets none of them.
        store: gets them; the session over this pipeline runs on it, too.
        ahead: events that may wait for `taken`. One more, and the line stands still as far back as
            the decoder: a slow reader costs time, not memory.
    """

    def __init__(self, pipeline: Pipeline, *, store: Store, ahead: int = 8) -> None:
        if ahead < 1:
            raise ConfigError(f"A reader takes at least one event at a time, not {ahead}.")
        self._pipeline = pipeline
        self._store = store
        self._ahead = ahead
        self._made = 0
        self._taken = 0
        self._moved = asyncio.Event()

    def taken(self, seq: int) -> None:
        """The reader is done with every event up to this one."""
        self._taken = seq
        self._moved.set()

    async def encode(self, clip: Clip) -> Encoded:
        return await self._pipeline.encode(clip)

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        """As `Pipeline.anticipate`, once there is room. Cancellation loses the event."""
        while self._made - self._taken >= self._ahead:
            self._moved.clear()
            await self._moved.wait()
        # Any number: which one the event gets is known once it is appended.
        reply = await self._pipeline.anticipate(encoded, replace(request, number=0))
        assert reply.body is not None, "an event that is appended nowhere comes back"
        self._made = await self._store.append(request.stream, lease=request.lease, body=reply.body)
        prior = None if reply.prior is None else replace(reply.prior, seq=self._made)
        return replace(reply, seq=self._made, prior=prior, body=None)

    async def supersede(self, stream: str, clip: int) -> None:
        """Nothing: of a file no clip makes another one old. (And the word would reach a live stream
        of the same name.)"""
