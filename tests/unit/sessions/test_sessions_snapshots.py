"""The newest used frame of a running session, as a picture in the store."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest
from doubles import TINY, FakePipeline, ScriptedSource, pictures, wait_for
from PIL import Image
from prometheus_text import read_samples

from streamer.errors import CapacityError, LeaseLost, NotFound
from streamer.prometheus_meter import PrometheusMeter
from streamer.records import Picture, Sampling, StreamSpec
from streamer.sessions.config import SessionConfig
from streamer.sessions.ending import Ending
from streamer.sessions.session import Session
from streamer.store.memory import MemoryStore
from streamer.store.protocol import StoredPicture

pytestmark = pytest.mark.unit

FPS = 40.0
SPEC = StreamSpec(source="synthetic:x", sampling=Sampling(frames=8, fps=FPS, stride_s=0.05))


def coloured(count: int, *, first: int = 0) -> list[Picture]:
    """Pictures in which each is a little brighter than the one before."""
    shades = [np.full((16, 16, 3), 10 * i, dtype=np.uint8) for i in range(first, first + count)]
    return [
        replace(each, image=shade)
        for each, shade in zip(pictures(count, fps=FPS, first=first), shades, strict=True)
    ]


class Run:
    def __init__(self, store: MemoryStore, task: asyncio.Task[Ending], meter: PrometheusMeter):
        self.store, self.task, self.meter = store, task, meter

    async def snapshot_of(self, tick: int) -> StoredPicture:
        """Wait for the picture of that frame."""
        found: list[StoredPicture] = []

        async def is_there() -> bool:
            try:
                found[:] = [await self.store.get_picture("cam", "snapshot")]
            except NotFound:
                return False
            return found[0].captured_at_ns == round(tick / FPS * 1e9)

        await wait_for(is_there)
        return found[0]

    def count(self, fate: str) -> float:
        name = f"streamer_pictures_total{{fate={fate},kind=snapshot}}"
        return read_samples(self.meter.exposition().decode()).get(name, 0.0)


@asynccontextmanager
async def running(
    source: ScriptedSource, *, store: MemoryStore | None = None, snapshots: bool = True
) -> AsyncIterator[Run]:
    store, meter = store or MemoryStore(), PrometheusMeter()
    record, _ = await store.create_stream("cam", SPEC)
    session = Session(
        record,
        store=store,
        pipeline=FakePipeline(store=store),
        model=TINY,
        open_source=source,
        owner="here",
        config=SessionConfig(snapshots=snapshots),
        meter=meter,
    )
    task = asyncio.ensure_future(session.run())
    try:
        yield Run(store, task, meter)
    finally:
        task.cancel()
        await asyncio.wait({task})


def shade(picture: StoredPicture) -> int:
    assert picture.media_type == "image/jpeg"
    with Image.open(io.BytesIO(picture.body)) as image:
        assert image.size == (16, 16)
        return round(float(np.asarray(image).mean()))


async def test_while_a_clip_fills_the_newest_frame_is_shown_then_that_of_the_newest_clip() -> None:
    more, rest = threading.Event(), threading.Event()
    steps = [*coloured(3), more, *coloured(5, first=3), rest, *coloured(3, first=8)]
    async with running(ScriptedSource(steps=steps)) as run:
        assert shade(await run.snapshot_of(2)) == pytest.approx(20, abs=2)
        more.set()
        assert shade(await run.snapshot_of(7)) == pytest.approx(70, abs=2)
        rest.set()  # the second clip ends with frame 9; frame 10 is of none yet
        assert shade(await run.snapshot_of(9)) == pytest.approx(90, abs=2)
        older = await run.store.get_picture("cam", "snapshot", at_ns=round(8 / FPS * 1e9))
        assert older.captured_at_ns == round(7 / FPS * 1e9)
        assert run.count("stored") == 3


async def test_switched_off_nothing_is_written() -> None:
    async with running(ScriptedSource(steps=coloured(12)), snapshots=False) as run:
        await run.store.wait("cam", after_seq=4, timeout_s=10)  # states and two clips
        with pytest.raises(NotFound):
            await run.store.get_picture("cam", "snapshot")


class Reluctant(MemoryStore):
    """Refuses pictures with this error; the first one only."""

    error: Exception | None = None

    async def put_picture(self, *arguments, **keywords) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error
        await super().put_picture(*arguments, **keywords)


async def test_a_store_that_is_away_costs_one_picture() -> None:
    store, more = Reluctant(), threading.Event()
    store.error = CapacityError("The store restarts.")
    steps = [*coloured(3), more, *coloured(5, first=3)]
    async with running(ScriptedSource(steps=steps), store=store) as run:

        async def has_failed() -> bool:
            return run.count("failed") == 1

        await wait_for(has_failed)
        more.set()
        await run.snapshot_of(7)
        assert run.count("stored") == 1


async def test_a_lost_lease_ends_the_session() -> None:
    store = Reluctant()
    store.error = LeaseLost("The lease of stream 'cam' is not ours any more.")
    async with running(ScriptedSource(steps=coloured(3)), store=store) as run:
        async with asyncio.timeout(10):
            assert await run.task is Ending.LEASE_LOST
