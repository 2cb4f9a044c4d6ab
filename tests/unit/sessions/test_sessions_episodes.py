"""No episode stays open for ever, whoever dies and whenever."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from doubles import TINY, ScriptedSource, pictures, read_bodies, wait_until
from prometheus_text import read_samples
from surprising import SurprisingPipeline

from streamer.errors import CapacityError, SourceDenied
from streamer.futures.config import SurpriseConfig
from streamer.prometheus_meter import PrometheusMeter
from streamer.records import Sampling, StreamSpec
from streamer.sessions.config import SessionConfig
from streamer.sessions.ending import Ending
from streamer.sessions.session import Session
from streamer.sources.source import Report, Sink
from streamer.store.config import StoreConfig
from streamer.store.memory import MemoryStore
from streamer.store.protocol import LogSlice

pytestmark = pytest.mark.unit

STREAM = "cam"
SPEC = StreamSpec(
    source="synthetic:x",
    horizons_s=(0.5,),
    sampling=Sampling(frames=8, fps=4.0, stride_s=0.5),
)
QUICK = SessionConfig(
    lease_ttl_s=20.0, renew_s=0.05, status_s=0.02, status_ttl_s=20.0, snapshots=False
)
SIX_CLIPS = pictures(18)
"""8 frames fill the first clip, then one every 2 frames."""
LONG = SurpriseConfig(calm_clips=3)


@pytest.fixture
async def store() -> MemoryStore:
    store = MemoryStore()
    await store.create_stream(STREAM, SPEC)
    return store


def pipeline(store: MemoryStore, zs: dict[int, float], **changes: Any) -> SurprisingPipeline:
    return SurprisingPipeline(store=store, zs=zs, config=LONG, **changes)


async def session(
    store: MemoryStore, pipeline: SurprisingPipeline, source: ScriptedSource | None = None
) -> Session:
    return Session(
        await store.get_stream(STREAM),
        store=store,
        pipeline=pipeline,
        model=TINY,
        open_source=source or ScriptedSource(steps=SIX_CLIPS, live=False),
        owner="here",
        config=QUICK,
    )


async def ran(
    store: MemoryStore, pipeline: SurprisingPipeline, source: ScriptedSource | None = None
) -> Ending:
    async with asyncio.timeout(10):
        return await (await session(store, pipeline, source)).run()


async def told(store: MemoryStore) -> list[tuple[object, ...]]:
    """Phase, reason, episode, seq of the clip that brought it."""
    return [
        (b["phase"], b["reason"], b["episode"], b["anticipation"])
        for b in await read_bodies(store, STREAM)
        if b["type"] == "surprise"
    ]


async def assert_whole(store: MemoryStore) -> None:
    """Every episode that the log speaks of has exactly one end, and nothing after it."""
    ended: set[object] = set()
    named: set[object] = set()
    for body in await read_bodies(store, STREAM):
        surprise: Any = body.get("surprise")
        name = body.get("episode") or (surprise and surprise["episode"])
        if not name:
            continue
        assert name not in ended
        named.add(name)
        if body.get("phase") == "end":
            ended.add(name)
    assert named == ended != set()


async def types(store: MemoryStore) -> list[object]:
    return [b["type"] for b in await read_bodies(store, STREAM)]


async def test_a_file_that_ends_inside_an_episode_closes_it(store: MemoryStore) -> None:
    assert await ran(store, pipeline(store, {4: 7.0, 5: 8.0})) is Ending.ENDED
    begun, ended = await told(store)
    assert begun[:2] == ("begin", None) and ended[:3] == ("end", "stopped", begun[2])
    assert (await types(store))[-2:] == ["surprise", "stream.state"]
    await assert_whole(store)


async def test_a_quiet_stream_is_told_of_no_episode(store: MemoryStore) -> None:
    await ran(store, pipeline(store, {}))
    assert await told(store) == []


class Denied(ScriptedSource):
    """A camera that refuses in the middle."""

    def run(self, *, sink: Sink, report: Report, stop: Any) -> None:
        super().run(sink=sink, report=report, stop=stop)
        raise SourceDenied("The camera refused the password.")


async def test_a_stream_that_fails_inside_an_episode_closes_it(store: MemoryStore) -> None:
    source = Denied(steps=SIX_CLIPS, live=False)
    assert await ran(store, pipeline(store, {4: 7.0}), source) is Ending.FAILED
    assert [each[:2] for each in await told(store)][-1] == ("end", "stopped")
    assert (await read_bodies(store, STREAM))[-1]["state"] == "failed"
    await assert_whole(store)


@pytest.mark.parametrize("how", ["paused", "changed"])
async def test_who_stops_a_stream_inside_an_episode_closes_it(store: MemoryStore, how: str) -> None:
    calls = pipeline(store, dict.fromkeys(range(9), 7.0))
    source = ScriptedSource(steps=pictures(8))
    running = asyncio.ensure_future((await session(store, calls, source)).run())
    await wait_until(lambda: len(calls.requests) > 0)
    if how == "paused":
        await store.set_desired(STREAM, "paused")
    else:
        await store.change_stream(STREAM, replace(SPEC, source="synthetic:y"))
    async with asyncio.timeout(10):
        assert await running is (Ending.PAUSED if how == "paused" else Ending.REPLACED)
    assert (await told(store))[-1][:2] == ("end", "stopped")
    if how == "paused":
        assert (await types(store))[-2:] == ["surprise", "stream.state"]
    await assert_whole(store)


async def killed(store: MemoryStore, dying: SurprisingPipeline) -> int:
    """Run a session until its pipeline hangs; then nothing of it runs any more, not even what it
    would do at its end. Returns the head of the log."""
    running = asyncio.ensure_future((await session(store, dying)).run())
    async with asyncio.timeout(10):
        await dying.hung.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return len(await read_bodies(store, STREAM))


@pytest.mark.parametrize(
    "hangs", [{3: "between"}, {3: "after"}, {4: "before"}, {4: "between"}, {5: "after"}], ids=str
)
async def test_a_killed_session_leaves_what_the_next_one_closes(
    store: MemoryStore, hangs: dict[int, str]
) -> None:
    head = await killed(store, pipeline(store, {3: 7.0, 4: 9.0}, hangs=hangs))
    await ran(store, pipeline(store, {}), ScriptedSource(steps=pictures(8), live=False))
    after = (await read_bodies(store, STREAM))[head:]
    kinds = [b["type"] for b in after]
    assert kinds.index("surprise") < kinds.index("anticipation")
    closing = after[kinds.index("surprise")]
    assert (closing["phase"], closing["reason"]) == ("end", "restart")
    peak: Any = closing["peak"]
    assert peak["z"] == (7.0 if 3 in hangs or hangs == {4: "before"} else 9.0)
    await assert_whole(store)


@pytest.mark.parametrize("where", ["before", "between", "after"])
@pytest.mark.parametrize("clip", range(6))
async def test_a_lost_answer_leaves_no_episode_open(
    store: MemoryStore, clip: int, where: str
) -> None:
    """A replica dies with a clip; the session and its file go on."""
    calls = pipeline(store, {1: 7.0, 2: 8.0}, lost={clip: where})
    calls.on_request = forget_after(calls, clip)
    assert await ran(store, calls) is Ending.ENDED
    assert [r.clip for r in calls.requests].count(clip) == (2 if where == "before" else 1)
    bodies = await read_bodies(store, STREAM)
    times = [b["capture_time"] for b in bodies if b["type"] == "anticipation"]
    assert len(times) == len(set(times)) == 6, "each clip has one event"
    await assert_whole(store)


async def test_the_same_file_again_is_not_taken_for_its_first_run(store: MemoryStore) -> None:
    await ran(store, pipeline(store, {}))
    calls = pipeline(store, {}, lost={0: "before"})
    calls.on_request = forget_after(calls, 0)
    await ran(store, calls)
    assert [r.clip for r in calls.requests] == [0, 0, 1, 2, 3, 4, 5]


def forget_after(calls: SurprisingPipeline, clip: int) -> Any:
    """The answer to this clip is lost once."""

    def on_request(request: Any) -> None:
        if [each.clip for each in calls.requests].count(clip):
            calls.lost = {}

    return on_request


async def test_a_refusal_does_not_end_an_episode(store: MemoryStore) -> None:
    """No room for the third clip: the log says nothing that was not heard."""
    calls = pipeline(store, {1: 7.0, 2: 7.0}, lost={2: "before"})
    calls.on_request = forget_after(calls, 2)
    await ran(store, calls)
    assert [each[:2] for each in await told(store)] == [("begin", None), ("end", "calm")]


class AwayAtFirst(MemoryStore):
    """Cannot be read for a while."""

    refusals = 0

    async def read(self, stream: str, *, after_seq: int, limit: int = 256) -> LogSlice:
        if self.refusals:
            self.refusals -= 1
            raise CapacityError("The store restarts.", 0.001)
        return await super().read(stream, after_seq=after_seq, limit=limit)


async def test_a_store_that_is_away_is_waited_for() -> None:
    store = AwayAtFirst()
    await store.create_stream(STREAM, SPEC)
    store.refusals = 3
    assert await ran(store, pipeline(store, {3: 7.0})) is Ending.ENDED
    assert store.refusals == 0
    await assert_whole(store)


async def test_a_short_episode_in_a_long_log(store: MemoryStore) -> None:
    """Only the end of the log is looked at."""
    await killed(store, pipeline(store, {3: 7.0}, hangs={4: "before"}))
    await ran(store, pipeline(store, {}))
    await came_and_went(store, times=600)
    await ran(store, pipeline(store, {}))
    assert [each[:2] for each in await told(store)] == [("begin", None), ("end", "restart")]


async def test_an_open_episode_behind_a_camera_that_came_and_went(store: MemoryStore) -> None:
    """Its connections were too short for a clip, so the end of the log is states and no more."""
    await killed(store, pipeline(store, {3: 7.0}, hangs={4: "before"}))
    await came_and_went(store, times=600)
    await ran(store, pipeline(store, {}))
    assert [each[:2] for each in await told(store)] == [("begin", None), ("end", "restart")]
    await assert_whole(store)


@pytest.mark.parametrize("max_events", [100, 300, 520])
async def test_an_episode_that_nothing_retained_speaks_of_any_more(max_events: int) -> None:
    store = MemoryStore(StoreConfig(max_events=max_events))
    await store.create_stream(STREAM, SPEC)
    await killed(store, pipeline(store, {3: 7.0}, hangs={4: "before"}))
    await came_and_went(store, times=600)
    assert await ran(store, pipeline(store, {})) is Ending.ENDED


async def came_and_went(store: MemoryStore, *, times: int) -> None:
    lease = await store.acquire_lease(STREAM, owner="test", ttl_s=60)
    for _ in range(times):
        await store.append(STREAM, lease=lease.token, body=b'{"type":"stream.state","state":"x"}')
    await store.release_lease(lease)


async def test_episodes_are_counted(store: MemoryStore) -> None:
    meter = PrometheusMeter()
    running = Session(
        await store.get_stream(STREAM),
        store=store,
        pipeline=pipeline(store, {1: 7.0, 5: 7.0}),
        model=TINY,
        open_source=ScriptedSource(steps=SIX_CLIPS, live=False),
        owner="here",
        config=QUICK,
        meter=meter,
    )
    await running.run()
    assert samples(meter) == {"total": 2.0, "open": 0.0}


def samples(meter: PrometheusMeter) -> dict[str, float]:
    found = read_samples(meter.exposition().decode())
    return {
        "total": found["streamer_surprise_episodes_total{stream=cam}"],
        "open": found["streamer_surprise_episode_open{stream=cam}"],
    }
