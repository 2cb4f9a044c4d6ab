"""What a session counts reaches the meter whole, whatever happens to it."""

from __future__ import annotations

import asyncio

import pytest
from doubles import TINY, FakePipeline, ScriptedSource, pictures
from prometheus_text import read_samples

from streamer.errors import CapacityError
from streamer.prometheus_meter import PrometheusMeter
from streamer.records import Sampling, SourceState, StreamSpec
from streamer.sessions.session import Session
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.unit

SPEC = StreamSpec(source="synthetic:x", sampling=Sampling(frames=8, fps=4.0, stride_s=0.5))


class DeafStore(MemoryStore):
    """Takes no status."""

    async def put_status(self, *_: object, **__: object) -> None:
        raise CapacityError("The store restarts.", 0.001)


async def metered(source: ScriptedSource, *, store: MemoryStore) -> dict[str, float]:
    meter = PrometheusMeter()
    record, _ = await store.create_stream("cam", SPEC)
    session = Session(
        record,
        store=store,
        pipeline=FakePipeline(store=store),
        model=TINY,
        open_source=source,
        owner="here",
        meter=meter,
    )
    async with asyncio.timeout(10):
        await session.run()
    return read_samples(meter.exposition().decode())


@pytest.mark.parametrize("kind", [MemoryStore, DeafStore])
async def test_nothing_is_missing_at_the_end(kind: type[MemoryStore]) -> None:
    steps = pictures(42, fps=8.0)  # every second one is off the grid
    found = await metered(ScriptedSource(steps=steps, live=False), store=kind())
    assert found["streamer_frames_total{fate=used,stream=cam}"] == 21
    assert found["streamer_frames_total{fate=sampled_out,stream=cam}"] == 21
    assert found["streamer_frames_total{fate=dropped,stream=cam}"] == 0
    assert found["streamer_clips_total{fate=published,stream=cam}"] == 7
    assert found["streamer_clips_total{fate=superseded,stream=cam}"] == 0
    assert found["streamer_rollouts_superseded_total{stream=cam}"] == 0
    assert found["streamer_clip_staleness_seconds_count{stream=cam}"] == 7
    assert found["streamer_source_reconnects_total{stream=cam}"] == 0


async def test_each_loss_of_the_source_counts_once() -> None:
    lost = SourceState(state="reconnecting", reason="refused")
    again = SourceState(state="reconnecting", reason="refused", retry_in_s=2.0)
    live = SourceState(state="live")
    steps = [lost, again, live, *pictures(8), lost, live, *pictures(8, generation=1)]
    found = await metered(ScriptedSource(steps=steps, live=False), store=MemoryStore())
    assert found["streamer_source_reconnects_total{stream=cam}"] == 2
