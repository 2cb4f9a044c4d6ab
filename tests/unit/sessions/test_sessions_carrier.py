"""Two clips of one stream under way at once: what overlaps, what must not, and how it ends."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from doubles import wait_until
from hypothesis import given, settings
from hypothesis import strategies as st
from staged_pipeline import StagedPipeline, clip_of, settle

from streamer.errors import (
    CapacityError,
    LatentLost,
    LeaseLost,
    ModelError,
    NumericalError,
    StreamerError,
)
from streamer.metrics import lookup
from streamer.records import Sampling, SourceState, StreamSpec
from streamer.sessions import carrier as carrier_module
from streamer.sessions.announcer import Announcer
from streamer.sessions.carrier import Carrier
from streamer.sessions.config import SessionConfig
from streamer.sessions.episodes import EpisodeKeeper
from streamer.sessions.slot import Blocking, Latest
from streamer.store.memory import MemoryStore
from streamer.telemetry import NullMeter

pytestmark = pytest.mark.unit

SPEC = StreamSpec(
    source="synthetic:x",
    horizons_s=(0.5, 1.0),
    sampling=Sampling(frames=8, fps=4.0, stride_s=0.5),
)
FULL = CapacityError("The queue is full.", 0.0)


class CountingMeter(NullMeter):
    """Counters by name, or by name and fate."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()

    def add(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        lookup(name, labels, kinds=("counter",))
        self.totals[name.removesuffix("_total") + labels.get("fate", "")] += int(value)


@asynccontextmanager
async def carrying(*, live: bool = True, config: SessionConfig | None = None) -> AsyncIterator[Any]:
    """A carrier at work on an empty slot: ``line.put(0, 1)``, ``line.pipeline``, ``line.task``."""
    store = MemoryStore()
    await store.create_stream("cam", SPEC)
    lease = await store.acquire_lease("cam", owner="here", ttl_s=60)
    announcer = Announcer(store, lease=lease)
    announcer.report(SourceState(state="live"))
    pipeline = StagedPipeline()
    carrier = Carrier(
        SPEC,
        lease=lease,
        pipeline=pipeline,
        teller=announcer,
        episodes=EpisodeKeeper(store, lease=lease),
        config=config or SessionConfig(),
        meter=(meter := CountingMeter()),
    )
    slot = Latest() if live else Blocking(100, stop=threading.Event())
    carry = carrier.carry_live if live else carrier.carry_file
    task = asyncio.ensure_future(carry(slot))

    async def put(*clips: int) -> None:
        for index in clips:
            slot.put(clip_of(index))
            await settle()

    async def answer(half: Any, clip: int, **horizons: int) -> None:
        pipeline.answer(half, clip, **horizons)
        await settle()

    async def refuse(half: Any, clip: int, error: Exception) -> None:
        pipeline.refuse(half, clip, error)
        await settle()

    async def end() -> None:
        slot.close()
        async with asyncio.timeout(5):
            await task

    yield SimpleNamespace(
        pipeline=pipeline, carrier=carrier, meter=meter, slot=slot, task=task, announcer=announcer,
        put=put, answer=answer, refuse=refuse, end=end,
    )  # fmt: skip
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await settle()
    assert asyncio.all_tasks() == {asyncio.current_task()}, "a task was left behind"


async def test_the_next_clip_is_encoded_during_a_rollout() -> None:
    async with carrying() as line:
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1)
        assert (line.pipeline.rolling, line.pipeline.encoding) == ([0], [1])
        await line.answer("roll", 0)
        await line.answer("encode", 1)
        await line.answer("roll", 1)
        assert line.pipeline.log == [
            ("encode", 0), ("roll", 0), ("encode", 1), ("event", 0), ("roll", 1), ("event", 1),
        ]  # fmt: skip
        second = line.pipeline.requests[1]
        assert (second.prior.seq, second.surprise.history) == (1, (0.0,))
        assert (line.carrier.published, line.carrier.cut_short) == (2, 0)


async def test_a_rollout_asks_for_the_device_before_the_next_clip_does() -> None:
    async with carrying() as line:
        await line.put(0, 1)
        await line.answer("encode", 0)
        assert line.pipeline.log == [("encode", 0), ("roll", 0), ("encode", 1)]


async def test_on_one_device_the_clip_taken_is_the_newest_when_it_is_free() -> None:
    async with carrying() as line:
        line.pipeline.shares_device = True
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1, 2)
        assert (line.pipeline.rolling, line.pipeline.encoding) == ([0], [])
        await line.answer("roll", 0)
        assert line.pipeline.encoding == [2]
        await line.answer("encode", 2)
        await line.answer("roll", 2)
        assert line.pipeline.events == [0, 2]
        assert not [clip for what, clip in line.pipeline.log if what == "supersede"]


async def test_a_newer_latent_supersedes_the_rollout_before_it_and_nothing_else_does() -> None:
    async with carrying() as line:
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1)
        assert ("supersede", 0) not in line.pipeline.log  # it may still be refused
        await line.answer("encode", 1)
        assert line.pipeline.log[-1] == ("supersede", 0)
        assert line.pipeline.rolling == [0]  # and the next one waits until that is published
        await line.answer("roll", 0, horizons=1)
        assert line.pipeline.log[-2:] == [("event", 0), ("roll", 1)]
        assert line.pipeline.requests[1].prior.horizons_s == (0.5,)
        await line.answer("roll", 1)
        assert line.pipeline.log.count(("supersede", 0)) == 1
        assert ("supersede", 1) not in line.pipeline.log
        assert (line.carrier.published, line.carrier.cut_short) == (2, 1)
        assert line.meter.totals["streamer_rollouts_superseded"] == 1


async def test_waiting_for_the_rollout_before_it_is_queueing() -> None:
    async with carrying() as line:
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1)
        await line.answer("encode", 1)
        await asyncio.sleep(0.02)
        await line.answer("roll", 0, horizons=1)
        assert line.pipeline.encoded[1].queue_ms >= 21.0  # 1 ms of it in the pool


async def test_no_third_clip_is_under_way_and_the_newest_one_follows() -> None:
    async with carrying() as line:
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1, 2, 3)
        await line.answer("encode", 1)
        await line.put(4)
        assert (line.pipeline.rolling, line.pipeline.encoding) == ([0], [])
        await line.answer("roll", 0, horizons=1)
        assert (line.pipeline.rolling, line.pipeline.encoding) == ([1], [4])
        await line.answer("encode", 4)
        await line.answer("roll", 1, horizons=1)
        await line.answer("roll", 4)
        assert line.pipeline.events == [0, 1, 4]
        assert line.slot.superseded == 2
        # Clips 2 and 3 are told by the event after them, not by the one that was under way.
        assert [r.dropped for r in line.pipeline.requests] == [0, 0, 4]


async def test_a_rollout_that_was_not_told_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carrier_module, "_SAY_AGAIN_S", 0.001)
    async with carrying() as line:
        line.pipeline.on_supersede = CapacityError("The rollout does not answer.")
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1)
        await line.answer("encode", 1)
        await wait_until(lambda: line.pipeline.log.count(("supersede", 0)) >= 3)
        line.pipeline.on_supersede, line.pipeline.is_obedient = None, True
        await wait_until(lambda: line.pipeline.events == [0])
        await line.answer("roll", 1)
        assert (line.carrier.rejected, line.carrier.cut_short) == (0, 1)


async def test_a_refused_clip_supersedes_nothing() -> None:
    async with carrying() as line:
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1)
        await line.refuse("encode", 1, FULL)
        assert ("supersede", 0) not in line.pipeline.log
        await line.put(2)
        await line.answer("encode", 2)
        await line.refuse("roll", 0, FULL)
        await line.answer("roll", 2)
        assert line.pipeline.events == [2]
        assert line.carrier.rejected == 2
        assert line.pipeline.requests[1].dropped == 4  # clips 0 and 1, two ticks each
        assert line.pipeline.requests[1].prior is None


async def test_a_file_overlaps_too_and_is_never_cut_short() -> None:
    async with carrying(live=False) as line:
        await line.put(0, 1, 2)
        await line.answer("encode", 0)
        await line.answer("encode", 1)
        assert (line.pipeline.rolling, line.pipeline.encoding) == ([0], [])
        await line.answer("roll", 0)
        assert (line.pipeline.rolling, line.pipeline.encoding) == ([1], [2])
        await line.answer("encode", 2)
        await line.answer("roll", 1)
        await line.answer("roll", 2)
        await line.end()
        assert line.pipeline.events == [0, 1, 2]
        assert not [clip for what, clip in line.pipeline.log if what == "supersede"]


async def test_a_file_waits_with_what_it_has() -> None:
    async with carrying(live=False) as line:
        await line.put(0)
        await line.refuse("encode", 0, FULL)
        await line.answer("encode", 0)
        await line.refuse("roll", 0, FULL)
        assert line.carrier.last_error == FULL.message
        await line.answer("roll", 0)
        assert Counter(what for what, _ in line.pipeline.log) == {
            "encode": 2,
            "roll": 2,
            "event": 1,
        }


async def test_a_latent_that_was_lost_is_made_again() -> None:
    async with carrying(live=False) as line:
        await line.put(0)
        await line.answer("encode", 0)
        await line.refuse("roll", 0, LatentLost("It died with its replica.", 0.0))
        assert (line.pipeline.rolling, line.pipeline.encoding) == ([], [0])
        await line.answer("encode", 0)
        await line.answer("roll", 0)
        assert line.pipeline.events == [0]


@pytest.mark.parametrize("live", [True, False])
async def test_a_lease_lost_in_the_rollout_ends_the_other_half(live: bool) -> None:
    async with carrying(live=live) as line:
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1)
        await line.refuse("roll", 0, LeaseLost("It is somebody else's."))
        with pytest.raises(LeaseLost):
            await line.task
        assert line.pipeline.cancelled == [("encode", 1)]


@pytest.mark.parametrize("live", [True, False])
async def test_a_lease_lost_while_no_other_clip_is_there(live: bool) -> None:
    async with carrying(live=live) as line:
        await line.put(0)
        await line.answer("encode", 0)
        await line.refuse("roll", 0, LeaseLost("It is somebody else's."))
        with pytest.raises(LeaseLost):
            await line.task


@pytest.mark.parametrize("live", [True, False])
async def test_a_lease_lost_while_the_next_one_waits_for_the_rollout(live: bool) -> None:
    async with carrying(live=live) as line:
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1)
        await line.answer("encode", 1)
        await line.refuse("roll", 0, LeaseLost("It is somebody else's."))
        with pytest.raises(LeaseLost):
            await line.task


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("error", [LeaseLost("Gone."), ModelError("It does not fit.")])
async def test_what_was_encoded_before_a_failure_is_published(
    live: bool, error: StreamerError
) -> None:
    async with carrying(live=live) as line:
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1)
        await line.refuse("encode", 1, error)
        assert line.pipeline.rolling == [0]
        await line.answer("roll", 0)
        with pytest.raises(type(error)):
            await line.task
        assert line.pipeline.events == [0]


async def test_a_lost_lease_counts_more_than_what_failed_before_it() -> None:
    async with carrying() as line:
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1)
        await line.refuse("encode", 1, ModelError("It does not fit."))
        await line.refuse("roll", 0, LeaseLost("Gone."))
        with pytest.raises(LeaseLost):
            await line.task


async def test_a_bug_is_raised_as_it_is() -> None:
    async with carrying() as line:
        line.pipeline.on_supersede = ZeroDivisionError("a bug")
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1)
        await line.answer("encode", 1)
        with pytest.raises(ZeroDivisionError):
            await line.task


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("is_encoded", [True, False])
async def test_cancellation_ends_both_halves(live: bool, is_encoded: bool) -> None:
    async with carrying(live=live) as line:
        await line.put(0)
        await line.answer("encode", 0)
        await line.put(1)
        if is_encoded:
            await line.answer("encode", 1)
        line.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await line.task
        assert line.pipeline.open == {}
        expected = {("roll", 0)} if is_encoded else {("roll", 0), ("encode", 1)}
        assert set(line.pipeline.cancelled) == expected


async def test_the_last_clip_is_published_before_it_is_over() -> None:
    async with carrying() as line:
        await line.put(0)
        await line.answer("encode", 0)
        line.slot.close()
        await settle()
        assert not line.task.done()
        await line.answer("roll", 0)
        await line.task
        assert line.pipeline.events == [0]


async def test_several_refusals_in_a_row_are_said_once_and_taken_back() -> None:
    async with carrying(config=SessionConfig(rejections_told=2)) as line:
        said = []
        line.announcer.news.clear()
        for clip in range(4):
            await line.put(clip)
            await line.refuse("encode", clip, NumericalError(f"Not finite in clip {clip}."))
            said.append(line.announcer.state.reason)
        assert said == ["", "rejected", "rejected", "rejected"]
        assert "weights" in line.announcer.state.detail
        assert line.carrier.last_error == "Not finite in clip 3."
        assert len(line.announcer._pending) == 2  # live, rejected
        await line.put(4)
        await line.answer("encode", 4)
        await line.answer("roll", 4)
        assert line.announcer.state == SourceState(state="live")
        assert line.carrier.last_error == ""


async def test_a_camera_that_is_away_speaks_for_itself() -> None:
    away = SourceState(state="reconnecting", reason="eof")
    async with carrying(config=SessionConfig(rejections_told=1)) as line:
        await line.put(0)
        line.announcer.report(away)
        await line.refuse("encode", 0, FULL)
        assert line.announcer.state == away
        line.announcer.report(SourceState(state="live"))
        await line.put(1)
        await line.refuse("encode", 1, FULL)
        assert line.announcer.state.reason == "rejected"
        line.announcer.report(away)
        await line.put(2)
        await line.answer("encode", 2)
        await line.answer("roll", 2)
        assert line.announcer.state == away


Move = st.sampled_from(("put", "encode", "roll", "cut", "refuse encode", "refuse roll"))


async def _played(moves: list[str], *, live: bool, obedient: bool, shared: bool) -> Any:
    async with carrying(live=live) as line:
        line.pipeline.is_obedient, line.pipeline.shares_device = obedient, shared
        clips = 0
        for move in moves:
            if move == "put":
                await line.put(clips)
                clips += 1
                continue
            half: Any = "encode" if "encode" in move else "roll"
            (clip,) = [each for what, each in line.pipeline.open if what == half] or [None]
            if clip is None:
                continue
            if "refuse" in move:
                await line.refuse(half, clip, FULL)
            elif move == "cut":
                await line.answer(half, clip, horizons=1)
            else:
                await line.answer(half, clip)
        line.slot.close()
        await settle()
        while not line.task.done():
            assert line.pipeline.open, "nothing is under way, and it does not end"
            await line.answer(*next(iter(line.pipeline.open)))
        await line.task
        return SimpleNamespace(clips=clips, **vars(line))


@settings(max_examples=60, deadline=None)
@given(
    moves=st.lists(Move, max_size=40),
    obedient=st.booleans(),
    live=st.booleans(),
    shared=st.booleans(),
)
def test_whatever_takes_how_long(
    moves: list[str], obedient: bool, live: bool, shared: bool
) -> None:
    """The double itself fails when two rollouts are under way."""
    line = asyncio.run(_played(moves, live=live, obedient=obedient, shared=shared))
    log, events = line.pipeline.log, line.pipeline.events
    assert events == sorted(set(events))
    if not live:
        assert events == list(range(line.clips))
        assert not [clip for what, clip in log if what == "supersede"]
    assert line.carrier.published == len(events)
    assert line.carrier.published + line.carrier.rejected + line.slot.superseded == line.clips
    fates = {"published", "superseded", "rejected"}
    assert sum(line.meter.totals[f"streamer_clips{fate}"] for fate in fates) == line.clips
    heard = [request.prior.seq if request.prior else 0 for request in line.pipeline.requests]
    assert heard == sorted(heard)
    for at, (what, clip) in enumerate(log):
        if what == "supersede":  # its rollout had begun, and was not over
            assert ("roll", clip) in log[:at] and ("event", clip) not in log[:at]
