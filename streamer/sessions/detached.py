"""A pipeline whose events go to whoever asked, instead of into the service's log."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from streamer.errors import ConfigError
from streamer.records import AnticipationReply, AnticipationRequest, Clip, Encoded
from streamer.sessions.pipeline import Pipeline
from streamer.store.memory import MemoryStore

__all__ = ["DetachedLog", "DetachedPipeline"]


class DetachedLog(MemoryStore):
    """A store for one session, in which the next number can be taken before its event is made.

    Args:
        epoch: name of its log.
    """

    def __init__(self, *, epoch: str) -> None:
        super().__init__(epoch=epoch)
        self.turn = asyncio.Lock()
        """Whoever has it is the only one to append, with `append_in_turn`."""

    async def append(self, stream: str, *, lease: str, body: bytes) -> int:
        async with self.turn:
            return await self.append_in_turn(stream, lease=lease, body=body)

    async def append_in_turn(self, stream: str, *, lease: str, body: bytes) -> int:
        """As `append`."""
        return await super().append(stream, lease=lease, body=body)

    async def next_seq(self, stream: str) -> int:
        return (await self.read(stream, after_seq=0, limit=1)).head_seq + 1


class DetachedPipeline:
    """A `Pipeline` that appends to a log of its own, and waits for its reader.

    Args:
        pipeline: makes the events; its own log gets none of them.
        log: gets them; the session over this pipeline runs on it, too.
        ahead: events that may wait for `taken`. One more, and the line stands still as far back as
            the decoder: a slow reader costs time, not memory.
    """

    def __init__(self, pipeline: Pipeline, *, log: DetachedLog, ahead: int = 8) -> None:
        if ahead < 1:
            raise ConfigError(f"A reader takes at least one event at a time, not {ahead}.")
        self._pipeline = pipeline
        self._log = log
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
        async with self._log.turn:  # what the session says meanwhile waits, and comes after it
            return await self._numbered(encoded, request)

    async def supersede(self, stream: str, clip: int) -> None:
        """Nothing: of a file no clip makes another one old. (And the word would reach a live stream
        of the same name.)"""

    async def _numbered(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        number = await self._log.next_seq(request.stream)
        reply = await self._pipeline.anticipate(encoded, replace(request, number=number))
        for body in (reply.body, reply.episode_body):
            if body is not None:
                self._made = await self._log.append_in_turn(
                    request.stream, lease=request.lease, body=body
                )
        return replace(reply, body=None, episode_body=None)
