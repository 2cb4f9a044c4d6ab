"""One source for one reader, who may leave at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from doubles import TINY, FakePipeline, ScriptedSource, pictures, wait_until

from streamer.records import Sampling, StreamSpec
from streamer.sessions.config import SessionConfig
from streamer.sessions.ending import Ending
from streamer.sessions.playing import Play, playing
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.unit

SPEC = StreamSpec(
    source="file:x",
    horizons_s=(0.5,),
    sampling=Sampling(frames=8, fps=4.0, stride_s=0.5),
)
QUICK = SessionConfig(lease_ttl_s=20.0, renew_s=5.0, status_s=0.02, status_ttl_s=20.0)


@asynccontextmanager
async def play_of(pipeline: FakePipeline) -> AsyncIterator[Play]:
    store = pipeline.store
    record, _ = await store.create_stream("clip", SPEC)
    async with playing(
        record,
        store=store,
        pipeline=pipeline,
        model=TINY,
        open_source=ScriptedSource(steps=pictures(12), live=False),
        owner="here",
        config=QUICK,
    ) as play:
        yield play


async def test_every_event_is_read_and_the_session_is_over() -> None:
    async with play_of(FakePipeline(store=MemoryStore())) as play:
        events = [event async for event in play.events]
        assert play.session.result() is Ending.ENDED
    assert [b'"anticipation"' in event for event in events].count(True) == 3


async def test_a_reader_who_leaves_while_it_waits_leaves_no_task() -> None:
    pipeline = FakePipeline(store=MemoryStore(), gate=asyncio.Semaphore(0))

    async def read() -> None:
        async with play_of(pipeline) as play:
            async for _ in play.events:
                pass

    reading = asyncio.ensure_future(read())
    await wait_until(lambda: pipeline.entered == 1)  # the reader has all that there is
    await wait_until(lambda: any("MemoryStore.wait" in repr(task) for task in others()))
    reading.cancel()
    await asyncio.wait({reading})
    await asyncio.sleep(0)
    assert others() == set()


def others() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]
