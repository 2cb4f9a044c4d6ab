"""One source through the whole line for one reader: a session over a store of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from streamer.events.render import render
from streamer.records import ModelInfo, StreamRecord
from streamer.sessions.config import SessionConfig
from streamer.sessions.ending import Ending
from streamer.sessions.intake import SourceOpener
from streamer.sessions.pipeline import Pipeline
from streamer.sessions.session import Session
from streamer.store.protocol import Store

__all__ = ["Play", "playing"]

_WAIT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """A source on its way through the line."""

    events: AsyncIterator[bytes]
    """Each event as it was appended, whole JSON messages with `id` and `seq`; ends after the
    last. Read it to its end, or leave the context to stop early."""
    session: asyncio.Task[Ending]
    """Done once `events` has ended."""


def _nobody(seq: int) -> None:
    pass


@asynccontextmanager
async def playing(
    record: StreamRecord,
    *,
    store: Store,
    pipeline: Pipeline,
    model: ModelInfo,
    open_source: SourceOpener,
    owner: str,
    config: SessionConfig,
    taken: Callable[[int], None] = _nobody,
) -> AsyncIterator[Play]:
    """Start. Leaving the context stops what is still running, and waits until it has.

    Args:
        record: as registered in `store`.
        taken: told the seq of each event once the reader comes back for the next one.
    """
    session = Session(
        record,
        store=store,
        pipeline=pipeline,
        model=model,
        open_source=open_source,
        owner=owner,
        config=replace(config, snapshots=False),  # nobody could ask for one
    )
    # No task group: it would wrap what the reader raises (a broken pipe) into a group.
    running = asyncio.create_task(session.run(), name=f"session {record.stream}")
    try:
        events = _follow(store, record.stream, running=running, taken=taken)
        yield Play(events=events, session=running)
    finally:
        running.cancel()
        await asyncio.wait({running})


async def _follow(
    store: Store, stream: str, *, running: asyncio.Task[Ending], taken: Callable[[int], None]
) -> AsyncIterator[bytes]:
    after_seq = 0
    while True:
        is_over = running.done()
        found = await store.read(stream, after_seq=after_seq)
        for entry in found.entries:
            yield render(entry.body, found.epoch, entry.seq)
            after_seq = entry.seq
            taken(after_seq)
        if is_over and not found.entries:
            return
        if not found.entries:
            appended = asyncio.ensure_future(
                store.wait(stream, after_seq=after_seq, timeout_s=_WAIT_S)
            )
            try:
                await asyncio.wait({running, appended}, return_when=asyncio.FIRST_COMPLETED)
            finally:  # also for a reader who leaves
                appended.cancel()
