"""What is asked of a stream while its session runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from doubles import TINY, FakePipeline, ScriptedSource, pictures, wait_for, wait_until

from streamer.backoff import Backoff
from streamer.errors import SourceDenied
from streamer.records import Outcome, Sampling, StreamSpec
from streamer.sessions.config import SessionConfig, SupervisorConfig
from streamer.sessions.control import needs_reopening
from streamer.sessions.ending import Ending
from streamer.sessions.session import Session
from streamer.sessions.supervisor import Supervisor
from streamer.store.memory import MemoryStore
from streamer.store.protocol import LogSlice

pytestmark = pytest.mark.unit

SPEC = StreamSpec(
    source="synthetic:x",
    horizons_s=(0.5,),
    sampling=Sampling(frames=8, fps=4.0, stride_s=0.5),
)
QUICK = SessionConfig(lease_ttl_s=20.0, renew_s=0.05, status_s=0.02, status_ttl_s=20.0)


class Camera:
    """A source that is opened as often as sessions begin, and shows pictures when asked."""

    def __init__(self, rounds: int) -> None:
        self.opened: list[str] = []
        self.more = [threading.Event() for _ in range(rounds)]

    def __call__(self, url: str) -> ScriptedSource:
        self.opened.append(url)
        steps: list[Any] = [*pictures(8)]
        for n, event in enumerate(self.more):
            steps += [event, *pictures(2, first=8 + 2 * n)]
        return ScriptedSource(steps=steps)


class Host:
    """Real sessions of one camera."""

    def __init__(self, store: MemoryStore, camera: Camera) -> None:
        self.store = store
        self.camera = camera
        self.pipeline = FakePipeline(store=store)
        self.endings: list[Ending] = []

    async def run(self, stream: str) -> Ending:
        session = Session(
            await self.store.get_stream(stream),
            store=self.store,
            pipeline=self.pipeline,
            model=TINY,
            open_source=self.camera,
            owner="here",
            config=QUICK,
        )
        self.endings.append(await session.run())
        return self.endings[-1]


@asynccontextmanager
async def supervised(host: Host, config: SupervisorConfig) -> AsyncIterator[None]:
    supervisor = Supervisor(host.store, host=host, owner="here", config=config)
    running = asyncio.ensure_future(supervisor.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


# A session that is opened again only after a pause would not be back within this test's patience.
PATIENT = SupervisorConfig(poll_s=1.0, retry=Backoff(first_s=30.0, cap_s=60.0))


@pytest.mark.parametrize(
    ("change", "reopens"),
    [
        ({"horizons_s": (1.0, 2.0)}, False),
        ({"mode": "gap"}, False),
        ({"retain_s": 60.0}, False),
        ({"source": "synthetic:y"}, True),
        ({"model": "double"}, True),
        ({"sampling": Sampling(frames=8, fps=8.0, stride_s=0.5)}, True),
    ],
)
async def test_a_change_reaches_the_next_clip(change: dict[str, Any], reopens: bool) -> None:
    changed = replace(SPEC, **change)
    assert needs_reopening(SPEC, changed) == reopens
    store = MemoryStore()
    camera = Camera(rounds=1)
    host = Host(store, camera)
    await store.create_stream("cam", SPEC)
    async with supervised(host, PATIENT):
        await wait_until(lambda: len(host.pipeline.requests) == 1)
        record = await store.change_stream("cam", changed)

        async def is_applied() -> bool:
            return (await store.get_status("cam") or {}).get("revision") == record.revision

        await wait_for(is_applied)
        if reopens:
            await wait_until(lambda: len(camera.opened) == 2)
            assert host.endings == [Ending.REPLACED]
            assert camera.opened[1] == changed.source
        camera.more[0].set()
        await wait_until(lambda: len(host.pipeline.requests) >= 2)
        if not reopens:
            assert len(camera.opened) == 1
            request = host.pipeline.requests[1]
            assert (request.horizons_s, request.mode) == (changed.horizons_s, changed.mode)
            assert request.prior is not None  # it is looked for in what it foretold
            assert request.prior.horizons_s == SPEC.horizons_s


async def test_a_pause_and_its_end_are_applied_revisions_too() -> None:
    store = MemoryStore()
    host = Host(store, Camera(rounds=0))
    await store.create_stream("cam", SPEC)
    async with supervised(host, PATIENT):
        await wait_until(lambda: len(host.pipeline.requests) == 1)
        await store.set_desired("cam", "paused")
        await wait_until(lambda: host.endings == [Ending.PAUSED])
        changed = await store.change_stream("cam", replace(SPEC, horizons_s=(1.0,)))
        assert host.camera.opened == [SPEC.source]  # nothing runs for a change
        record = await store.set_desired("cam", "live")
        await wait_until(lambda: len(host.pipeline.requests) == 2)
        assert host.pipeline.requests[1].horizons_s == changed.spec.horizons_s
        status = await store.get_status("cam") or {}
        assert status["revision"] == record.revision == 4


async def test_deleted_and_created_again_is_another_stream() -> None:
    store = MemoryStore()
    host = Host(store, Camera(rounds=0))
    await store.create_stream("cam", SPEC)
    async with supervised(host, PATIENT):
        await wait_until(lambda: len(host.pipeline.requests) == 1)
        await store.delete_stream("cam")
        await store.create_stream("cam", SPEC)
        await wait_until(lambda: len(host.camera.opened) == 2)


class ChangedAtTheLast(MemoryStore):
    """Somebody mends the stream when its session listens no more, but has not ended yet."""

    changed = replace(SPEC, source="synthetic:y")
    is_listening = True

    async def wait_registry(self, *, seen: int, timeout_s: float) -> int:
        try:
            return await super().wait_registry(seen=seen, timeout_s=timeout_s)
        except asyncio.CancelledError:
            self.is_listening = False
            raise

    async def read(self, stream: str, *, after_seq: int, limit: int = 256) -> LogSlice:
        if not self.is_listening:
            await self.change_stream(stream, self.changed)
        return await super().read(stream, after_seq=after_seq, limit=limit)


class ChangedBeneath(MemoryStore):
    """Somebody mends the stream between the last look of its session and its last word."""

    changed = replace(SPEC, source="synthetic:y")

    async def finish_stream(
        self, stream: str, *, lease: str, outcome: Outcome, if_revision: int | None = None
    ) -> None:
        await self.change_stream(stream, self.changed)
        await super().finish_stream(stream, lease=lease, outcome=outcome, if_revision=if_revision)


@pytest.mark.parametrize("kind", [ChangedAtTheLast, ChangedBeneath])
async def test_a_change_that_comes_with_the_failure_is_tried(
    kind: type[ChangedAtTheLast] | type[ChangedBeneath],
) -> None:
    store = kind()
    await store.create_stream("cam", SPEC)
    failing = Session(
        await store.get_stream("cam"),
        store=store,
        pipeline=FakePipeline(store=store),
        model=TINY,
        open_source=ScriptedSource(steps=[SourceDenied("The camera refused the password.")]),
        owner="here",
        config=QUICK,
    )
    async with asyncio.timeout(10):
        assert await failing.run() is Ending.REPLACED
    record = await store.get_stream("cam")
    assert (record.spec, record.outcome) == (store.changed, "")
