"""The store behind an actor keeps the protocol, answers while thousands wait, and may die."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import ray

from deployments.store import StoreClient, stop_store, store_actor
from streamer.errors import CapacityError
from streamer.records import StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.memory import MemoryStore

pytestmark = [pytest.mark.serve, pytest.mark.usefixtures("cluster")]

SPEC = StreamSpec(source="synthetic:bounce?seed=1")
WAIT_S = 20.0

# The suite that holds every store to the protocol; its tests become tests of this module.
_SUITE = Path(__file__).parents[1] / "contract" / "store" / "test_store_contract.py"
_spec = importlib.util.spec_from_file_location("store_contract", _SUITE)
assert _spec is not None and _spec.loader is not None
_contract = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_contract)
globals().update({name: test for name, test in vars(_contract).items() if name.startswith("test_")})


class ClockedStore(MemoryStore):
    """Its time passes when a test says so, and it can lose everything without a new process."""

    def __init__(self, config: StoreConfig) -> None:
        self._now_ns = 1_000_000_000_000
        super().__init__(config, monotonic=lambda: self._now_ns)

    async def elapse(self, seconds: float) -> None:
        self._now_ns += int(seconds * 1e9)

    async def reopen(self, config: StoreConfig) -> None:
        ClockedStore.__init__(self, config)


@dataclass(frozen=True, kw_only=True)
class Kit:
    """As the suite wants it."""

    open: Callable[[StoreConfig], Awaitable[StoreClient]]
    elapse: Callable[[float], Awaitable[None]]


@pytest.fixture(scope="module")
def clocked(cluster: str) -> Iterator[Any]:
    actor = ray.remote(ClockedStore).options(num_cpus=0, max_concurrency=100).remote(StoreConfig())
    yield actor
    ray.kill(actor)


@pytest.fixture
def kit(clocked: Any) -> Kit:
    async def open_store(config: StoreConfig) -> StoreClient:
        await clocked.reopen.remote(config)
        return StoreClient(config, actor=clocked)

    async def elapse(seconds: float) -> None:
        await clocked.elapse.remote(seconds)

    return Kit(open=open_store, elapse=elapse)


@pytest.fixture
async def store(kit: Kit) -> StoreClient:
    return await kit.open(StoreConfig())


@pytest.fixture
async def named() -> AsyncIterator[StoreClient]:
    """The store that replicas share."""
    stop_store()
    yield StoreClient(StoreConfig())
    stop_store()


async def test_clients_everywhere_find_the_same_store(named: StoreClient) -> None:
    await named.create_stream("kitchen", SPEC)
    other = StoreClient(StoreConfig(max_streams=1))
    assert [record.stream for record in await other.list_streams()] == ["kitchen"]
    assert await other.epoch() == await named.epoch()


async def test_the_store_answers_while_hundreds_wait(named: StoreClient) -> None:
    await named.create_stream("kitchen", SPEC)
    lease = await named.acquire_lease("kitchen", owner="me", ttl_s=60.0)
    waiting = [
        asyncio.ensure_future(named.wait("kitchen", after_seq=0, timeout_s=WAIT_S))
        for _ in range(500)
    ]
    async with asyncio.timeout(WAIT_S / 2):
        assert await named.present("ingest") == []
        await named.append("kitchen", lease=lease.token, body=b"{}")
        assert await asyncio.gather(*waiting) == [1] * 500


async def test_a_long_poll_outlasts_its_slices(
    named: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deployments.store._SLICE_S", 0.2)
    await named.create_stream("kitchen", SPEC)
    lease = await named.acquire_lease("kitchen", owner="me", ttl_s=60.0)
    waiting = asyncio.ensure_future(named.wait("kitchen", after_seq=0, timeout_s=WAIT_S))
    await asyncio.sleep(0.7)
    assert not waiting.done()
    await named.append("kitchen", lease=lease.token, body=b"{}")
    assert await waiting == 1
    assert await named.wait("kitchen", after_seq=1, timeout_s=0.3) == 1


async def test_a_killed_store_is_a_capacity_error_then_a_new_epoch(named: StoreClient) -> None:
    await named.create_stream("kitchen", SPEC)
    epoch = await named.epoch()
    waiting = asyncio.ensure_future(named.wait("kitchen", after_seq=0, timeout_s=WAIT_S))
    pid = await store_actor(StoreConfig()).__ray_call__.remote(lambda _: os.getpid())
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(CapacityError, match="store"):
        await waiting

    async def answer() -> str:
        while True:
            try:
                return await named.epoch()
            except CapacityError:
                await asyncio.sleep(0.1)

    async with asyncio.timeout(WAIT_S):
        assert await answer() != epoch
    assert await named.list_streams() == []
