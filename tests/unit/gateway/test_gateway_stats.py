"""Figures of a stream: quantiles, one look a second, restarts of the log."""

from __future__ import annotations

import json

import pytest

from streamer.gateway.stats import StatsDesk, quantiles
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.unit


async def _append(gateway, *totals):
    for total in totals:
        body = {"type": "anticipation", "latency_ms": {"encode": total / 2, "total": total}}
        lease = gateway.leases["cam"].token
        await gateway.store.append("cam", lease=lease, body=json.dumps(body).encode())


class Clock:
    now_s = 0

    def __call__(self):
        return self.now_s * 1_000_000_000


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def desk(gateway, clock):
    await gateway.stream()
    return StatsDesk(gateway.store, "cam", clock=clock)


def test_quantiles_are_values_that_occurred():
    found = quantiles({"total": float(value)} for value in range(1, 101))
    assert (found["total"].p50, found["total"].p95) == (50, 95)
    assert quantiles([{"total": 7.0}])["total"].p95 == 7
    assert quantiles([]) == {}


async def test_newest_sixty_and_one_look_a_second(gateway, desk, clock):
    await _append(gateway, *range(100))
    stats = await desk.stats()
    assert (stats.anticipations, stats.head_seq) == (60, 100)
    assert (stats.latency_ms["total"].p50, stats.latency_ms["encode"].p50) == (69, 34.5)
    await _append(gateway, 1000)
    assert await desk.stats() is stats
    clock.now_s = 1
    newer = await desk.stats()
    assert (newer.anticipations, newer.head_seq) == (60, 101)
    assert newer.latency_ms["total"].p50 == 70


async def test_a_stream_without_session_or_anticipations(gateway, desk):
    await gateway.append(3)
    stats = await desk.stats()
    assert (stats.state, stats.fps_in, stats.latency_ms) == ("starting", None, {})
    assert stats.anticipations == 0


@pytest.mark.parametrize("outcome", ["ended", "failed"])
async def test_a_stream_that_is_over_says_so(gateway, desk, outcome):
    lease = gateway.leases["cam"].token
    await gateway.store.finish_stream("cam", lease=lease, outcome=outcome)
    assert (await desk.stats()).state == outcome


async def test_a_stream_that_was_deleted_has_no_state(gateway, desk):
    await gateway.append()
    await gateway.store.delete_stream("cam")
    assert (await desk.stats()).state is None


async def test_a_log_that_began_anew(gateway, make_gateway, desk, clock):
    await _append(gateway, *range(10))
    await desk.stats()
    other = make_gateway(store=MemoryStore(epoch="e2"))
    await other.stream()
    await _append(other, 5)
    desk._store, clock.now_s = other.store, 1
    stats = await desk.stats()
    assert (stats.head_seq, stats.anticipations, stats.latency_ms["total"].p50) == (1, 1, 5)
