"""What replicas do in the background, and that its end does not go unnoticed."""

from __future__ import annotations

import asyncio

import pytest

from deployments.upkeep import Upkeep, keep_announcing
from streamer.errors import CapacityError
from streamer.store.memory import MemoryStore
from streamer.store.protocol import Presence

pytestmark = pytest.mark.serve

PRESENCE = Presence(kind="ingest", replica="Ingest#a@1")


class FlakyStore(MemoryStore):
    """Refuses the first announcement."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals = 1
        self.announced = asyncio.Event()

    async def announce(self, presence: Presence, *, ttl_s: float) -> None:
        if self.refusals:
            self.refusals -= 1
            raise CapacityError("The store does not answer at the moment.")
        await super().announce(presence, ttl_s=ttl_s)
        self.announced.set()


async def test_a_store_that_is_away_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployments.upkeep._PERIOD_S", 0.01)
    store = FlakyStore()
    upkeep = Upkeep()
    upkeep.start(keep_announcing(store, PRESENCE))
    async with asyncio.timeout(10):
        await store.announced.wait()
    assert await store.present("ingest") == [PRESENCE]
    upkeep.check()


async def test_a_replica_that_is_not_well_keeps_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployments.upkeep._PERIOD_S", 0.01)
    store = MemoryStore()
    asked = asyncio.Event()

    def is_well() -> bool:
        asked.set()
        return False

    upkeep = Upkeep()
    upkeep.start(keep_announcing(store, PRESENCE, is_well=is_well))
    async with asyncio.timeout(10):
        await asked.wait()
    assert await store.present("ingest") == []


async def test_a_task_that_broke_fails_the_health_check() -> None:
    async def breaks() -> None:
        raise ValueError("broken")

    async def ends() -> None:
        return

    for task, error in ((breaks, ValueError), (ends, RuntimeError)):
        upkeep = Upkeep()
        upkeep.start(task())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(error):
            upkeep.check()
