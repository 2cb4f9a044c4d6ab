"""An outage is two lines of the log, however long it lasts."""

from __future__ import annotations

import asyncio
import logging

import pytest
from doubles import wait_until

from streamer.errors import CapacityError
from streamer.outage import Outage
from streamer.sessions.lease import keep_lease
from streamer.store.memory import MemoryStore
from streamer.store.protocol import Lease

pytestmark = pytest.mark.unit


def test_one_line_at_each_end(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(logging.getLogger("streamer.x"), lost="store away", back="store back")
    with caplog.at_level(logging.INFO, "streamer"):
        outage.went_well()
        for _ in range(3):
            outage.failed("refused", stream="cam")
        outage.went_well()
        outage.went_well()
        outage.failed("again")
    assert [each.message for each in caplog.records] == ["store away", "store back", "store away"]
    first, second, _ = map(vars, caplog.records)
    assert (first["error"], first["stream"], second["failures"]) == ("refused", "cam", 3)
    assert second["away_s"] >= 0


class Away(MemoryStore):
    renewals = 0

    async def renew_lease(self, lease: Lease, *, ttl_s: float) -> None:
        self.renewals += 1
        if self.renewals < 6:
            raise CapacityError("The store is away.")


async def test_a_lease_tells_of_the_store_twice(caplog: pytest.LogCaptureFixture) -> None:
    store = Away()
    lease = Lease(stream="cam", token="t", owner="me")
    with caplog.at_level(logging.INFO, "streamer"):
        keeping = asyncio.ensure_future(keep_lease(store, lease, ttl_s=60, every_s=0.001))
        await wait_until(lambda: store.renewals > 8)
        keeping.cancel()
    said = [each.message for each in caplog.records]
    assert said == ["store out of reach", "store reached again"]
