"""One stream from a scripted source through a scripted pipeline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from doubles import TINY, FakePipeline, ScriptedSource, pictures, read_bodies, wait_for, wait_until

from streamer.errors import (
    CapacityError,
    Conflict,
    LeaseLost,
    ModelError,
    NumericalError,
    SourceDenied,
    SourceUnavailable,
    StreamerError,
)
from streamer.records import Outcome, Picture, Sampling, SourceState, StreamRecord, StreamSpec
from streamer.sessions.config import SessionConfig
from streamer.sessions.ending import Ending
from streamer.sessions.intake import SourceOpener
from streamer.sessions.session import Session
from streamer.sources.source import Report, Sink
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.unit

STREAM = "cam"
SPEC = StreamSpec(
    source="synthetic:x",
    horizons_s=(0.5,),
    sampling=Sampling(frames=8, fps=4.0, stride_s=0.5),
)
QUICK = SessionConfig(
    lease_ttl_s=20.0,  # a slow machine must not lose the lease
    renew_s=0.05,
    status_s=0.02,
    status_ttl_s=20.0,
    join_s=5.0,
    stale_strides=120.0,
)


@pytest.fixture
async def store() -> MemoryStore:
    return MemoryStore()


async def registered(store: MemoryStore, spec: StreamSpec = SPEC) -> StreamRecord:
    record, _ = await store.create_stream(STREAM, spec)
    return record


def session(
    record: StreamRecord, store: MemoryStore, pipeline: FakePipeline, source: SourceOpener
) -> Session:
    return Session(
        record,
        store=store,
        pipeline=pipeline,
        model=TINY,
        open_source=source,
        owner="here",
        config=QUICK,
    )


async def ran(
    store: MemoryStore, source: SourceOpener, *, pipeline: FakePipeline | None = None
) -> Ending:
    record = await registered(store)
    async with asyncio.timeout(10):
        return await session(record, store, pipeline or FakePipeline(store=store), source).run()


def states(bodies: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(b["state"], b["reason"]) for b in bodies if b["type"] == "stream.state"]


async def test_a_file_is_read_to_its_end_and_nothing_is_lost(store: MemoryStore) -> None:
    source = ScriptedSource(steps=pictures(21), live=False)
    pipeline = FakePipeline(store=store)
    assert await ran(store, source, pipeline=pipeline) is Ending.ENDED
    bodies = await read_bodies(store, STREAM)
    # 8 frames fill the first clip, then one every 2 frames: 8 10 12 14 16 18 20
    assert [b["clip"] for b in bodies if b["type"] == "anticipation"] == list(range(7))
    assert states(bodies) == [("starting", "opening"), ("live", ""), ("ended", "eof")]
    assert bodies[-1]["state"] == "ended"
    assert (await store.get_stream(STREAM)).outcome == "ended"
    assert await store.lease_holders() == {}


async def test_a_short_file_gives_one_padded_clip(store: MemoryStore) -> None:
    pipeline = FakePipeline(store=store)
    assert await ran(store, ScriptedSource(steps=pictures(3), live=False), pipeline=pipeline)
    assert [(r.padded, r.notes) for r in pipeline.requests] == [(5, ("padded",))]


async def test_waiting_for_the_model_is_told_apart_from_assembling(store: MemoryStore) -> None:
    """Arrival to clip took 40 s here; the clip itself waited for next to nothing."""
    late = [replace(each, arrived_ns=each.arrived_ns - 40 * 10**9) for each in pictures(8)]
    pipeline = FakePipeline(store=store)
    await ran(store, ScriptedSource(steps=late, live=False), pipeline=pipeline)
    assert pipeline.requests[0].assemble_ms >= 40_000
    assert 1.0 <= pipeline.encoded[0].queue_ms < 20_000  # 1 ms of it in the pipeline


async def test_an_answer_travels_to_the_next_clip(store: MemoryStore) -> None:
    pipeline = FakePipeline(store=store)
    await ran(store, ScriptedSource(steps=pictures(12), live=False), pipeline=pipeline)
    first, second, third = pipeline.requests
    assert first.prior is None
    assert second.prior is not None and second.prior.last_tick == 7
    assert second.surprise.history == (0.0,)
    assert third.surprise.history == (0.0, 1.0)
    assert third.last_tick - second.last_tick == 2


async def test_a_slow_model_gets_the_newest_clip_and_the_loss_is_told(store: MemoryStore) -> None:
    gate = asyncio.Semaphore(0)
    first_is_in = threading.Event()
    source = ScriptedSource(steps=[*pictures(8), first_is_in, *pictures(20, first=8)])
    pipeline = FakePipeline(store=store, gate=gate)
    record = await registered(store)
    running = asyncio.ensure_future(session(record, store, pipeline, source).run())
    await wait_until(lambda: pipeline.entered == 1)
    first_is_in.set()  # ten more clips arrive while the first is being encoded
    await status_with(store, clips=11, clips_superseded=9)
    gate.release()
    gate.release()
    await wait_until(lambda: len(pipeline.requests) == 2)
    assert [r.clip for r in pipeline.requests] == [0, 10]
    assert pipeline.requests[0].dropped == 0
    assert pipeline.requests[1].dropped == 8  # 9 clips of 2 ticks, no more than the window has
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class EndingWorld(ScriptedSource):
    """Live, and over after its last picture."""

    def run(self, *, sink: Sink, report: Report, stop: threading.Event) -> None:
        for step in self.steps:
            assert isinstance(step, Picture)
            sink(step)


@pytest.mark.parametrize("now", [0, 1])
async def test_clips_of_the_past_are_no_loss(store: MemoryStore, now: int) -> None:
    """A world that plays its past at once gives the newest clip of it."""
    past = [replace(each, is_past=True) for each in pictures(20)]
    pipeline = FakePipeline(store=store)
    await ran(store, EndingWorld(steps=[*past, *pictures(now, first=20)]), pipeline=pipeline)
    assert [(r.last_tick, r.dropped) for r in pipeline.requests] == [(19, 0)]


async def test_the_past_does_not_wait_for_a_picture_on_the_grid(store: MemoryStore) -> None:
    """At 8 fps every second picture of the present is sampled out."""
    steps = pictures(32, fps=8.0)
    world = [*(replace(each, is_past=True) for each in steps[:31]), steps[31]]
    pipeline = FakePipeline(store=store)
    record = await registered(store)
    running = asyncio.ensure_future(
        session(record, store, pipeline, ScriptedSource(steps=world)).run()
    )
    await wait_until(lambda: len(pipeline.requests) == 1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_latency_does_not_grow_with_a_slow_model(store: MemoryStore) -> None:
    """Whatever the backlog, the clip that is taken next is the newest there is."""
    gate = asyncio.Semaphore(0)
    rounds = [threading.Event() for _ in range(5)]
    steps: list[Picture | threading.Event] = [*pictures(8)]
    for n, event in enumerate(rounds):
        steps += [event, *pictures(10, first=8 + 10 * n)]
    pipeline = FakePipeline(store=store, gate=gate)
    record = await registered(store)
    running = asyncio.ensure_future(
        session(record, store, pipeline, ScriptedSource(steps=steps)).run()
    )
    for n, event in enumerate(rounds):
        await wait_until(lambda n=n: pipeline.entered == n + 1)
        event.set()
        await status_with(store, clips=1 + 5 * (n + 1), clips_superseded=4 * (n + 1))
        gate.release()
    gate.release()
    await wait_until(lambda: len(pipeline.requests) == 6)
    assert [r.clip for r in pipeline.requests] == [0, 5, 10, 15, 20, 25]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def status_with(store: MemoryStore, **expected: object) -> dict[str, object]:
    async def is_said() -> bool:
        return expected.items() <= (await store.get_status(STREAM) or {}).items()

    await wait_for(is_said)
    return await store.get_status(STREAM) or {}


async def test_no_room_drops_the_clip_and_the_next_event_says_so(store: MemoryStore) -> None:
    def full(clip: object) -> None:
        if pipeline.entered == 2:
            raise CapacityError("The encoder's queue is full.")

    pipeline = FakePipeline(store=store, on_encode=full)
    second, third = threading.Event(), threading.Event()
    steps = [*pictures(8), second, *pictures(2, first=8), third, *pictures(2, first=10)]
    record = await registered(store)
    running = asyncio.ensure_future(
        session(record, store, pipeline, ScriptedSource(steps=steps)).run()
    )
    await wait_until(lambda: len(pipeline.requests) == 1)
    second.set()
    status = await status_with(store, clips_rejected=1)
    assert status["last_error"] == "The encoder's queue is full."
    third.set()
    await wait_until(lambda: len(pipeline.requests) == 2)
    assert [(r.clip, r.dropped) for r in pipeline.requests] == [(0, 0), (2, 2)]
    assert pipeline.requests[1].prior is not None  # what was published before still counts
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_file_waits_for_room(store: MemoryStore) -> None:
    def full(clip: object) -> None:
        if pipeline.entered in (1, 2, 4):
            raise CapacityError("The encoder's queue is full.", 0.001)

    pipeline = FakePipeline(store=store, on_encode=full)
    assert await ran(store, ScriptedSource(steps=pictures(12), live=False), pipeline=pipeline)
    assert [r.clip for r in pipeline.requests] == [0, 1, 2]


async def test_pause_ends_the_session_and_continue_needs_another(store: MemoryStore) -> None:
    record = await registered(store)
    source = ScriptedSource(steps=pictures(8))
    pipeline = FakePipeline(store=store)
    running = asyncio.ensure_future(session(record, store, pipeline, source).run())
    await wait_until(lambda: len(pipeline.requests) == 1)
    await store.set_desired(STREAM, "paused")
    assert await asyncio.wait_for(running, 10) is Ending.PAUSED
    assert source.ended.is_set()
    assert await store.lease_holders() == {}
    paused = (await read_bodies(store, STREAM))[-1]
    assert (paused["state"], (await store.get_stream(STREAM)).outcome) == ("paused", "")
    record = await store.set_desired(STREAM, "live")
    again = asyncio.ensure_future(
        session(record, store, pipeline, ScriptedSource(steps=pictures(8))).run()
    )
    await wait_until(lambda: len(pipeline.requests) == 2)
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)
    await read_bodies(store, STREAM)


class ForgetfulStore(MemoryStore):
    """Announces a change of the registry, and is away when asked what it was."""

    async def get_stream(self, stream: str) -> StreamRecord:
        record = await super().get_stream(stream)
        if record.desired == "paused" and self.is_away:
            self.is_away = False
            raise CapacityError("The store restarts.")
        return record

    is_away = True


async def test_a_pause_is_not_missed_while_the_store_is_away() -> None:
    store = ForgetfulStore()
    record = await registered(store)
    pipeline = FakePipeline(store=store)
    source = ScriptedSource(steps=pictures(8))
    running = asyncio.ensure_future(session(record, store, pipeline, source).run())
    await wait_until(lambda: len(pipeline.requests) == 1)
    await store.set_desired(STREAM, "paused")
    assert await asyncio.wait_for(running, 10) is Ending.PAUSED
    assert not store.is_away


class AwayAtTheEnd(MemoryStore):
    """Out of reach at the moment when a file is over."""

    refusals = 2

    async def finish_stream(
        self,
        stream: str,
        *,
        lease: str,
        outcome: Outcome,
        if_revision: int | None = None,
    ) -> None:
        if self.refusals:
            self.refusals -= 1
            raise CapacityError("The store restarts.")
        await super().finish_stream(stream, lease=lease, outcome=outcome, if_revision=if_revision)


async def test_a_file_that_is_over_is_not_run_again_for_a_store_that_was_away() -> None:
    store = AwayAtTheEnd()
    record = await registered(store)
    source = ScriptedSource(steps=pictures(8), live=False)
    running = session(record, store, FakePipeline(store=store), source).run()
    assert await asyncio.wait_for(running, 10) is Ending.ENDED
    assert (await store.get_stream(STREAM)).outcome == "ended"
    states = [b["state"] for b in await read_bodies(store, STREAM) if b["type"] == "stream.state"]
    assert states.count("ended") == 1


@pytest.mark.parametrize("where", ["renewal", "append"])
async def test_a_lost_lease_ends_the_session_without_a_word(store: MemoryStore, where: str) -> None:
    def lost(request: object) -> None:
        raise LeaseLost("The lease of cam is somebody else's.")

    record = await registered(store)
    pipeline = FakePipeline(
        store=store, on_anticipate=lost if where == "append" else lambda _: None
    )
    source = ScriptedSource(steps=pictures(8 if where == "append" else 0))
    running = asyncio.ensure_future(session(record, store, pipeline, source).run())
    await wait_until_leased(store)
    if where == "renewal":
        await store.delete_stream(STREAM)
    assert await asyncio.wait_for(running, 10) in (Ending.LEASE_LOST, Ending.REPLACED)
    assert source.ended.is_set()


async def wait_until_leased(store: MemoryStore) -> None:
    async def is_leased() -> bool:
        return STREAM in await store.lease_holders()

    await wait_for(is_leased)


async def test_a_held_stream_is_left_alone(store: MemoryStore) -> None:
    await registered(store)
    await store.acquire_lease(STREAM, owner="elsewhere", ttl_s=60)
    source = ScriptedSource(steps=[])
    with pytest.raises(Conflict):
        await ran(store, source)
    assert not source.ended.is_set()


def raising(error: Exception) -> Callable[[object], None]:
    def raise_it(_: object) -> None:
        raise error

    return raise_it


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (SourceDenied("The camera refused the password."), "denied"),
        (SourceUnavailable("There is no such file."), "unavailable"),
    ],
)
async def test_a_source_that_gives_up_fails_the_stream(
    store: MemoryStore, error: StreamerError, reason: str
) -> None:
    assert await ran(store, ScriptedSource(steps=[error])) is Ending.FAILED
    last = (await read_bodies(store, STREAM))[-1]
    assert (last["state"], last["reason"], last["detail"]) == ("failed", reason, error.message)
    assert (await store.get_stream(STREAM)).outcome == "failed"


async def test_a_source_that_cannot_be_opened_fails_the_stream(store: MemoryStore) -> None:
    def opener(url: str) -> ScriptedSource:
        raise SourceUnavailable("Nobody answers.")

    assert await ran(store, opener) is Ending.FAILED


async def test_clips_that_do_not_fit_the_model_fail_the_stream(store: MemoryStore) -> None:
    pipeline = FakePipeline(store=store, on_encode=raising(ModelError("Too small.")))
    assert await ran(store, ScriptedSource(steps=pictures(8)), pipeline=pipeline) is Ending.FAILED


@pytest.mark.parametrize("is_live", [True, False])
async def test_one_clip_of_impossible_numbers_ends_a_file_but_not_a_camera(
    store: MemoryStore, is_live: bool
) -> None:
    def overflow(clip: object) -> None:
        if pipeline.entered == 1:
            raise NumericalError("The encoder gave values that are not finite.")

    pipeline = FakePipeline(store=store, on_encode=overflow)
    second = threading.Event()
    steps = [*pictures(8), second, *pictures(2, first=8)]
    record = await registered(store)
    source = ScriptedSource(steps=steps, live=is_live)
    running = asyncio.ensure_future(session(record, store, pipeline, source).run())
    if not is_live:
        assert await asyncio.wait_for(running, 10) is Ending.FAILED
        return
    await status_with(store, clips_rejected=1)
    second.set()
    await wait_until(lambda: len(pipeline.requests) == 1)
    assert pipeline.requests[0].dropped == 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_many_sessions_end_at_once_however_long_their_cameras_take(
    store: MemoryStore,
) -> None:
    """A pool of waiting threads would be full before the first camera lets go."""
    hanging = threading.Event()

    class Deaf(ScriptedSource):
        def run(self, *, sink: Sink, report: Report, stop: threading.Event) -> None:
            stop.wait(10)
            asked.append(self)
            hanging.wait(10)

    pipeline = FakePipeline(store=store)
    running: list[asyncio.Task[Ending]] = []
    asked: list[Deaf] = []
    for n in range(40):
        record, _ = await store.create_stream(f"cam{n}", SPEC)
        one = session(record, store, pipeline, Deaf(steps=[]))
        running.append(asyncio.ensure_future(one.run()))
    await wait_until(lambda: sum(t.name.startswith("decode-cam") for t in threads()) == 40)
    for each in running:
        each.cancel()
    await wait_until(lambda: len(asked) == 40)
    async with asyncio.timeout(3):
        await asyncio.to_thread(hanging.set)  # as anything else that needs a thread
    await asyncio.gather(*running, return_exceptions=True)
    assert all(each.cancelled() for each in running)


def threads() -> list[threading.Thread]:
    return threading.enumerate()


async def test_a_model_that_is_not_served_fails_the_stream(store: MemoryStore) -> None:
    record = await registered(store, replace(SPEC, model="another"))
    pipeline = FakePipeline(store=store)
    assert await session(record, store, pipeline, ScriptedSource(steps=[])).run() is Ending.FAILED
    assert "'another'" in str((await read_bodies(store, STREAM))[-1]["detail"])


@pytest.mark.parametrize("stride_s", [0.25, 0.3])
async def test_sampling_that_does_not_fit_the_model_fails_the_stream(
    store: MemoryStore, stride_s: float
) -> None:
    sampling = replace(SPEC.sampling, stride_s=stride_s)
    record = await registered(store, replace(SPEC, sampling=sampling))
    pipeline = FakePipeline(store=store)
    assert await session(record, store, pipeline, ScriptedSource(steps=[])).run() is Ending.FAILED
    assert "tubelet" in str((await read_bodies(store, STREAM))[-1]["detail"])


@pytest.mark.parametrize("where", ["thread", "loop"])
async def test_a_bug_is_told_and_raised(store: MemoryStore, where: str) -> None:
    bug = ZeroDivisionError("a bug")
    source = ScriptedSource(steps=[bug] if where == "thread" else pictures(8))
    pipeline = FakePipeline(
        store=store, on_encode=raising(bug) if where == "loop" else lambda _: None
    )
    with pytest.raises(ExceptionGroup) as caught:
        await ran(store, source, pipeline=pipeline)
    assert caught.value.subgroup(ZeroDivisionError)
    last = (await read_bodies(store, STREAM))[-1]
    assert (last["state"], last["reason"]) == ("reconnecting", "internal")
    assert (await store.get_stream(STREAM)).outcome == ""
    assert await store.lease_holders() == {}


async def test_cancellation_stops_the_thread_and_gives_the_lease_back(store: MemoryStore) -> None:
    record = await registered(store)
    source = ScriptedSource(steps=pictures(8))
    pipeline = FakePipeline(store=store, gate=asyncio.Semaphore(0))
    running = asyncio.ensure_future(session(record, store, pipeline, source).run())
    await wait_until(lambda: pipeline.entered == 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 10)
    assert source.ended.is_set()
    assert await store.lease_holders() == {}
    await wait_until(lambda: all(t.name != f"decode-{STREAM}" for t in threads()))


async def test_a_camera_says_how_full_its_first_clip_is(store: MemoryStore) -> None:
    steps = [
        SourceState(state="live"),
        *pictures(9),
        SourceState(state="stalled", reason="no_frames"),
        SourceState(state="live"),
        *pictures(1, first=9),  # which completes a clip
    ]
    record = await registered(store)
    pipeline = FakePipeline(store=store)
    running = asyncio.ensure_future(
        session(record, store, pipeline, ScriptedSource(steps=steps)).run()
    )
    await status_with(store, used=10, state="live", reason="")
    bodies = await read_bodies(store, STREAM)
    assert states(bodies) == [
        ("starting", "opening"),
        ("live", "filling"),
        ("live", ""),
        ("stalled", "no_frames"),
        ("live", ""),
    ]
    filling = next(b for b in bodies if b.get("reason") == "filling")
    assert (filling["have"], filling["need"]) == (1, 8)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_camera_that_is_back_fills_its_clip_anew(store: MemoryStore) -> None:
    """A new connection is a new generation: nothing is called complete before it is."""
    published = threading.Event()
    steps = [
        SourceState(state="live"),
        *pictures(8),
        published,
        SourceState(state="reconnecting", reason="eof", retry_in_s=0.5),
        SourceState(state="live"),
        *pictures(8, first=8, generation=1),
    ]
    record = await registered(store)
    pipeline = FakePipeline(store=store)
    running = asyncio.ensure_future(
        session(record, store, pipeline, ScriptedSource(steps=steps)).run()
    )
    await wait_until(lambda: len(pipeline.requests) == 1)
    published.set()
    await wait_until(lambda: len(pipeline.requests) == 2)
    await status_with(store, state="live", reason="")
    assert states(await read_bodies(store, STREAM)) == [
        ("starting", "opening"),
        ("live", "filling"),
        ("live", ""),
        ("reconnecting", "eof"),
        ("live", "filling"),
        ("live", ""),
    ]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_status_counts_what_happened(store: MemoryStore) -> None:
    record = await registered(store)
    source = ScriptedSource(steps=pictures(32, fps=16.0))
    running = asyncio.ensure_future(session(record, store, FakePipeline(store=store), source).run())
    status = await status_with(store, clips_published=1)
    assert (status["pictures"], status["used"], status["sampled_out"]) == (32, 8, 24)
    assert isinstance(status["lag_s"], float) and 0 <= status["lag_s"] < 60
    assert (status["source"], status["owner"], status["state"]) == ("scripted", "here", "live")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_clip_that_waited_too_long_is_noted_stale(store: MemoryStore) -> None:
    """120 strides of 0.5 s are allowed; these pictures arrived 40 s and 61 s ago."""
    late = [
        replace(picture, arrived_ns=picture.arrived_ns - ago_s * 10**9)
        for picture, ago_s in zip(pictures(10), [40] * 8 + [61] * 2, strict=True)
    ]
    second = threading.Event()
    source = ScriptedSource(steps=[*late[:8], second, *late[8:]])
    record = await registered(store)
    pipeline = FakePipeline(store=store)
    running = asyncio.ensure_future(session(record, store, pipeline, source).run())
    await wait_until(lambda: len(pipeline.requests) == 1)
    second.set()
    await wait_until(lambda: len(pipeline.requests) == 2)
    assert [r.notes for r in pipeline.requests] == [(), ("stale_window",)]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_clips_far_longer_than_the_model_knows_are_refused(store: MemoryStore) -> None:
    spec = replace(SPEC, sampling=Sampling(frames=100_000, fps=4.0, stride_s=0.5))
    record = await registered(store, spec)
    source = ScriptedSource(steps=pictures(1), live=False)
    assert await session(record, store, FakePipeline(store=store), source).run() is Ending.FAILED
    said = (await read_bodies(store, STREAM))[-1]
    assert (said["state"], said["reason"]) == ("failed", "config")
    assert "choose at most 64" in str(said["detail"])


async def test_no_part_of_a_file_is_left_out(store: MemoryStore) -> None:
    pipeline = FakePipeline(store=store)
    parts = [*pictures(4), *pictures(10, first=4, generation=1)]
    assert (
        await ran(store, ScriptedSource(steps=parts, live=False), pipeline=pipeline) is Ending.ENDED
    )
    told = [(r.generation, r.first_frame, r.last_frame, r.padded) for r in pipeline.requests]
    assert told == [(0, 0, 3, 4), (1, 4, 11, 0), (1, 6, 13, 0)]
