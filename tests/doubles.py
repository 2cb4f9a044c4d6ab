"""Stand-ins with a script: a source, a pipeline, a stream that is waited for. No sleeping."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamer.clock import format_utc, monotonic_ns, wall_ns
from streamer.records import (
    AnticipationReply,
    AnticipationRequest,
    Clip,
    ClockReading,
    Encoded,
    ModelInfo,
    Picture,
    Prior,
    SourceState,
    SurpriseState,
)
from streamer.sources.source import Report, Sink
from streamer.store.protocol import Store

__all__ = [
    "TINY",
    "FakePipeline",
    "ScriptedSource",
    "pictures",
    "read_bodies",
    "wait_for",
    "wait_until",
]

TINY = ModelInfo(
    name="double",
    fingerprint="000000000000",
    trained=False,
    crop=16,
    tubelet=2,
    patch=16,
    trained_frames=8,
    dtype="float32",
)

_IMAGE = np.zeros((16, 16, 3), dtype=np.uint8)
_DEADLINE_S = 10.0


def pictures(count: int, *, fps: float = 4.0, first: int = 0, generation: int = 0) -> list[Picture]:
    """`count` pictures in a row on a media clock."""
    return [
        Picture(
            image=_IMAGE,
            pts_s=i / fps,
            captured_at_ns=round(i / fps * 1e9),
            arrived_ns=monotonic_ns(),
            clock="media",
            generation=generation,
            index=i,
        )
        for i in range(first, first + count)
    ]


Step = Picture | SourceState | Exception | threading.Event


@dataclass(kw_only=True)
class ScriptedSource:
    """Plays its steps: shows a picture, says a state, waits for an event, raises an error.

    A live one stays open after the last step, until it is asked to stop.
    """

    steps: Sequence[Step]
    live: bool = True
    name: str = "scripted"
    reading: ClockReading | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def __call__(self, url: str) -> ScriptedSource:
        """As a `SourceOpener`."""
        return self

    def run(self, *, sink: Sink, report: Report, stop: threading.Event) -> None:
        try:
            for step in self.steps:
                if stop.is_set():
                    return
                match step:
                    case Picture():
                        sink(step)
                    case SourceState():
                        report(step)
                    case threading.Event():
                        _wait(step, stop)
                    case _:
                        raise step
            if self.live:
                stop.wait(_DEADLINE_S)
        finally:
            self.ended.set()


def _wait(event: threading.Event, stop: threading.Event) -> None:
    while not event.wait(0.01):
        if stop.is_set():
            return


@dataclass(kw_only=True)
class FakePipeline:
    """Appends a small event per clip. What goes wrong is a function of the clip's index."""

    store: Store
    gate: asyncio.Semaphore | None = None
    """One permit lets one clip through; None: all pass."""
    on_encode: Callable[[Clip], None] = lambda clip: None
    """May raise."""
    on_anticipate: Callable[[AnticipationRequest], None] = lambda request: None
    """May raise."""
    requests: list[AnticipationRequest] = field(default_factory=list)
    encoded: list[Encoded] = field(default_factory=list)
    """What came with each request."""
    entered: int = 0

    async def encode(self, clip: Clip) -> Encoded:
        self.entered += 1
        if self.gate is not None:
            await self.gate.acquire()
        self.on_encode(clip)
        return Encoded(latent=clip.index, queue_ms=1.0, encode_ms=2.0)

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        self.on_anticipate(request)
        body = {
            "type": "anticipation",
            "stream": request.stream,
            "time": format_utc(wall_ns()),
            "clip": request.clip,
            "dropped": request.dropped,
        }
        seq = await self.store.append(
            request.stream, lease=request.lease, body=json.dumps(body).encode()
        )
        self.requests.append(request)
        self.encoded.append(encoded)
        prior = Prior(
            seq=seq,
            generation=request.generation,
            last_tick=request.last_tick,
            horizons_s=request.horizons_s,
            tokens=None,
        )
        history = (*request.surprise.history, float(request.clip))
        return AnticipationReply(seq=seq, prior=prior, surprise=SurpriseState(history=history))

    async def supersede(self, stream: str, clip: int) -> None:
        """Its rollouts take no time."""


async def read_bodies(store: Store, stream: str) -> list[dict[str, object]]:
    """All retained events, with their seq; asserts that none is missing."""
    found = await store.read(stream, after_seq=0, limit=10_000)
    assert [entry.seq for entry in found.entries] == list(range(1, found.head_seq + 1))
    return [json.loads(entry.body) | {"seq": entry.seq} for entry in found.entries]


async def wait_until(condition: Callable[[], bool]) -> None:
    """Let the loop run until it holds; fails after a deadline."""

    async def holds() -> bool:
        return condition()

    await wait_for(holds)


async def wait_for(condition: Callable[[], Awaitable[bool]]) -> None:
    """The same for a condition that has to ask somebody."""
    async with asyncio.timeout(_DEADLINE_S):
        while not await condition():  # noqa: ASYNC110 - a condition over many objects has no event
            await asyncio.sleep(0.002)
