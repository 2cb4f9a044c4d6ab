"""A camera's clock that is not believed is told once, noted on events and shown in the status."""

from __future__ import annotations

import asyncio
import threading

import pytest
from doubles import TINY, FakePipeline, ScriptedSource, Step, pictures, read_bodies, wait_for
from prometheus_text import read_samples

from streamer.prometheus_meter import PrometheusMeter
from streamer.records import ClockReading, ClockWhy, Sampling, StreamSpec
from streamer.sessions.clock_watch import ClockWatch
from streamer.sessions.session import Session
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.unit

SPEC = StreamSpec(source="synthetic:x", sampling=Sampling(frames=8, fps=4.0, stride_s=0.5))


def reading(why: ClockWhy, *, offset_s: float | None = None) -> ClockReading:
    return ClockReading(clock="media", why=why, offset_s=offset_s, drift_ppm=20.0)


RIGHT = ClockReading(clock="rtcp", is_believed=True, why="ok", offset_s=-0.1)
WRONG = reading("skewed", offset_s=3600.0)
BEHIND = reading("skewed", offset_s=-7.24)
SILENT = reading("no_reports")


def test_only_a_change_is_said() -> None:
    watch = ClockWatch()
    looks = [None, SILENT, RIGHT, RIGHT, WRONG, WRONG, SILENT, reading("no_pts"), BEHIND, RIGHT]
    said = [watch.look(look) for look in looks]
    assert [state and state.reason for state in said] == [
        *[None] * 4,
        "clock_skewed",
        *[None] * 4,
        "clock_ok",
    ]
    assert said[4] is not None
    assert "3600.0 s ahead of ours" in said[4].detail and "NTP" in said[4].detail


def test_a_clock_that_is_behind_is_said_to_be() -> None:
    said = ClockWatch().look(BEHIND)
    assert said is not None and "7.2 s behind ours" in said.detail


class Camera(ScriptedSource):
    """Its clock is set while it is watched: a reading among the steps holds from there on."""

    def __init__(self, steps: list[Step | ClockReading]) -> None:
        super().__init__(steps=steps)  # type: ignore[arg-type]

    def run(self, *, sink, report, stop) -> None:  # type: ignore[no-untyped-def]
        plain, self.steps = self.steps, []
        for step in plain:
            if isinstance(step, ClockReading):
                self.reading = step
            elif isinstance(step, threading.Event):
                step.wait(10)
            else:
                sink(step)
        super().run(sink=sink, report=report, stop=stop)


async def test_a_session_tells_notes_and_shows_it() -> None:
    store, meter = MemoryStore(), PrometheusMeter()
    record, _ = await store.create_stream("cam", SPEC)
    pipeline = FakePipeline(store=store)
    go_on = [threading.Event(), threading.Event()]
    shots = pictures(12)
    camera = Camera(
        [RIGHT, *shots[:8], go_on[0], WRONG, *shots[8:10], go_on[1], RIGHT, *shots[10:]]
    )
    session = Session(
        record,
        store=store,
        pipeline=pipeline,
        model=TINY,
        open_source=camera,
        owner="here",
        meter=meter,
    )
    running = asyncio.ensure_future(session.run())

    async def published(count: int) -> None:
        async def holds() -> bool:
            return len(pipeline.requests) >= count

        await wait_for(holds)

    async def shown() -> dict[str, object]:
        return await store.get_status("cam") or {}

    await published(1)
    go_on[0].set()
    await published(2)

    async def is_shown() -> bool:
        return (await shown()).get("clock_why") == "skewed"

    await wait_for(is_shown)
    status = await shown()
    assert (status["clock"], status["clock_offset_s"], status["clock_drift_ppm"]) == (
        "media",
        3600.0,
        20.0,
    )
    assert (status["state"], status["reason"]) == ("live", "")
    found = read_samples(meter.exposition().decode())
    assert found["streamer_source_clock_offset_seconds{stream=cam}"] == 3600.0
    assert found["streamer_source_clock_drift_ratio{stream=cam}"] == pytest.approx(20e-6)
    go_on[1].set()
    await published(3)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    bodies = [body for body in await read_bodies(store, "cam") if body["type"] == "stream.state"]
    told = [body["reason"] for body in bodies if str(body["reason"]).startswith("clock")]
    assert told == ["clock_skewed", "clock_ok"]
    noted = ["clock_skewed" in request.notes for request in pipeline.requests]
    assert noted == [False, True, False]
