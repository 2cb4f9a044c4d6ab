"""Events for one reader: numbered without holes, and never far ahead of whoever reads them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from streamer.errors import CapacityError, ConfigError
from streamer.records import (
    AnticipationReply,
    AnticipationRequest,
    Encoded,
    StreamSpec,
    SurpriseState,
)
from streamer.sessions.detached import DetachedLog, DetachedPipeline

pytestmark = pytest.mark.unit

ENCODED = Encoded(latent=None, queue_ms=0.0, encode_ms=0.0)


_COUNTS = (
    *("start_ns", "end_ns", "frames", "fps", "first_frame", "last_frame", "last_tick"),
    *("dropped", "filled", "padded", "generation", "decode_ms", "assemble_ms"),
)


class FakePipeline:
    """Answers when it is let; every third clip has something to tell of an episode."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.numbers: list[int | None] = []
        self.error: Exception | None = None

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        await self.go.wait()
        if self.error is not None:
            raise self.error
        assert request.number is not None
        self.numbers.append(request.number)
        told = b'{"type":"surprise"}' if request.clip % 3 == 2 else None
        return AnticipationReply(
            seq=request.number,
            prior=None,
            surprise=SurpriseState(),
            body=b'{"type":"anticipation"}',
            episode_body=told,
        )


class Line:
    def __init__(self, log: DetachedLog, lease: str, *, ahead: int) -> None:
        self.log = log
        self.lease = lease
        self.models = FakePipeline()
        self.pipeline = DetachedPipeline(self.models, log=log, ahead=ahead)  # type: ignore[arg-type]

    async def anticipate(self, clip: int) -> AnticipationReply:
        request = AnticipationRequest(
            stream="x",
            lease=self.lease,
            mode="gap",
            horizons_s=(),
            clip=clip,
            clock="file",
            **dict.fromkeys(_COUNTS, 0),  # type: ignore[arg-type]
        )
        return await self.pipeline.anticipate(ENCODED, request)

    async def types(self) -> list[str]:
        entries = (await self.log.read("x", after_seq=0)).entries
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        return [json.loads(entry.body)["type"] for entry in entries]


@pytest.fixture
async def make_line() -> Any:
    async def make(*, ahead: int = 100) -> Line:
        log = DetachedLog(epoch="upload")
        await log.create_stream("x", StreamSpec(source="upload:"))
        lease = await log.acquire_lease("x", owner="me", ttl_s=60)
        return Line(log, lease.token, ahead=ahead)

    return make


async def test_every_event_has_the_number_it_was_made_with(make_line: Any) -> None:
    line = await make_line()
    line.models.go.clear()
    first = asyncio.ensure_future(line.anticipate(0))
    await asyncio.sleep(0)
    saying = asyncio.ensure_future(
        line.log.append("x", lease=line.lease, body=b'{"type":"stream.state"}')
    )
    await asyncio.sleep(0)
    line.models.go.set()
    assert ((await first).seq, await saying) == (1, 2)
    for clip in (1, 2, 3):
        reply = await line.anticipate(clip)
        assert (reply.body, reply.episode_body) == (None, None)
    assert line.models.numbers == [1, 3, 4, 6]
    assert await line.types() == [
        "anticipation",
        "stream.state",
        "anticipation",
        "anticipation",
        "surprise",
        "anticipation",
    ]


async def test_it_waits_for_its_reader(make_line: Any) -> None:
    line = await make_line(ahead=2)
    await line.anticipate(0)
    await line.anticipate(1)
    third = asyncio.ensure_future(line.anticipate(3))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not third.done()
    line.pipeline.taken(1)
    async with asyncio.timeout(5):
        assert (await third).seq == 3


async def test_a_refused_clip_takes_no_number(make_line: Any) -> None:
    line = await make_line()
    line.models.error = CapacityError("full")
    with pytest.raises(CapacityError):
        await line.anticipate(0)
    line.models.error = None
    assert (await line.anticipate(0)).seq == 1


async def test_no_room_at_all_cannot_work(make_line: Any) -> None:
    with pytest.raises(ConfigError, match="at least one"):
        await make_line(ahead=0)
