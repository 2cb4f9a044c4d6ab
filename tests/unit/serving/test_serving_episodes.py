"""Episodes of surprise in the log, beside the anticipations they belong to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from streamer.errors import CapacityError
from streamer.events.render import render
from streamer.events.schema import Anticipation, SurpriseEpisode, server_message
from streamer.futures.config import SurpriseConfig
from streamer.records import AnticipationReply, StreamSpec, SurpriseState
from streamer.serving.config import ServingConfig
from streamer.serving.local import LocalPipeline
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.unit

CONFIG = ServingConfig(surprise=SurpriseConfig(calm_clips=1))
UNUSED = SurpriseState(history=(0.01,) * 8)
"""To a stream with this past anything is surprising."""
USED = (1000.0,) * 8
"""To one with this past nothing is."""


class FailingStore(MemoryStore):
    """Out of reach for events of one type."""

    fails = ""

    async def append(self, stream: str, *, lease: str, body: bytes) -> int:
        if self.fails and json.loads(body)["type"] == self.fails:
            raise CapacityError("The store restarts.")
        return await super().append(stream, lease=lease, body=body)


class Line:
    """Clips one after the other, each with what the one before it left."""

    def __init__(self, pipeline: LocalPipeline, store: MemoryStore, make_clip: Any, request: Any):
        self.store = store
        self.state = UNUSED
        self._pipeline = pipeline
        self._make_clip = make_clip
        self._request = request
        self._prior: Any = None
        self._count = 0

    async def next(self, *, number: int | None = None, **changes: Any) -> AnticipationReply:
        clip = self._make_clip(self._count, seed=self._count, **changes)
        self._count += 1
        encoded = await self._pipeline.encode(clip)
        request = self._request(clip, prior=self._prior, surprise=self.state, number=number)
        reply = await self._pipeline.anticipate(encoded, request)
        self._prior, self.state = reply.prior, reply.surprise
        return reply

    async def events(self) -> list[Any]:
        log = await self.store.read("cam", after_seq=0)
        rendered = (render(entry.body, log.epoch, entry.seq) for entry in log.entries)
        return [server_message.validate_json(each) for each in rendered]


@pytest.fixture
async def line(small_model, make_clip, make_request) -> AsyncIterator[Line]:
    store = FailingStore()
    await store.create_stream("cam", StreamSpec(source="synthetic:bounce"))
    lease = await store.acquire_lease("cam", owner="test", ttl_s=60)
    pipeline = LocalPipeline(small_model, store=store, config=CONFIG)

    def request(clip: Any, **changes: Any) -> Any:
        return make_request(clip, lease=lease.token, **changes)

    yield Line(pipeline, store, make_clip, request)
    await pipeline.close()


async def test_it_is_told_right_after_the_clip_that_began_it(line: Line) -> None:
    await line.next()
    reply = await line.next()
    quiet, clip, begun = await line.events()
    assert isinstance(clip, Anticipation) and isinstance(begun, SurpriseEpisode)
    assert quiet.surprise is None and clip.surprise is not None
    assert clip.surprise.episode == begun.episode == reply.surprise.episode.id
    assert (begun.phase, begun.reason, begun.end, begun.duration_s) == ("begin", None, None, 0)
    assert (begun.anticipation, begun.peak.seq, reply.seq) == (2, 2, 2)
    assert begun.start == begun.window.end == begun.peak.capture_time == clip.capture_time
    assert (begun.value, begun.z) == (clip.surprise.value, clip.surprise.z)
    assert (begun.peak.value, begun.peak.z) == (clip.surprise.value, clip.surprise.z)
    assert (begun.baseline, begun.threshold, begun.model) == (0.01, 6.0, clip.model)
    assert reply.surprise.history == UNUSED.history


async def test_one_episode_from_begin_to_end(line: Line) -> None:
    for n in range(3):
        await line.next(end_ns=n * 10**9)
    line.state = SurpriseState(history=USED, episode=line.state.episode)
    await line.next(end_ns=3 * 10**9)
    await line.next(end_ns=4 * 10**9)
    events = await line.events()
    first, begun, second, last, ended, after = events[1:]
    members = [each.surprise.episode for each in (first, second, last, after)]
    assert members == [begun.episode] * 3 + [None]
    assert (ended.type, ended.phase, ended.reason) == ("surprise", "end", "calm")
    assert (ended.episode, ended.anticipation) == (begun.episode, last.seq)
    assert (ended.start, ended.end, ended.duration_s) == (begun.start, last.capture_time, 2.0)
    assert ended.peak.z == max(first.surprise.z, second.surprise.z)
    assert ended.z == last.surprise.z < 0
    assert line.state.episode is None


async def test_another_connection_ends_it_without_a_value(line: Line) -> None:
    await line.next()
    await line.next(end_ns=10**9)
    await line.next(end_ns=9 * 10**9, generation=1)
    begun, clip, ended = (await line.events())[2:]
    assert clip.surprise is None
    assert (ended.phase, ended.reason, ended.end) == ("end", "reconnected", begun.start)
    assert (ended.value, ended.z, ended.baseline, ended.duration_s) == (None, None, None, 0)
    assert ended.window.end == clip.capture_time and ended.anticipation == clip.seq


async def test_without_a_log_the_event_comes_back(line: Line) -> None:
    await line.next(number=0)
    reply = await line.next(number=1)
    assert reply.body is not None and reply.episode_body is not None
    told = server_message.validate_json(render(reply.episode_body, "x", 1))
    assert isinstance(told, SurpriseEpisode)
    assert (told.phase, told.anticipation, told.peak.seq) == ("begin", 1, 1)
    assert await line.events() == []
    assert (await line.next(number=2)).episode_body is None


async def test_a_store_that_fails_between_the_two_is_told(line: Line) -> None:
    await line.next()
    line.store.fails = "surprise"  # type: ignore[attr-defined]
    with pytest.raises(CapacityError):
        await line.next()
    assert [each.type for each in await line.events()] == ["anticipation"] * 2
