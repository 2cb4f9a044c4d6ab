"""`/metrics`: the gateway's own numbers and what it knows of streams."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx2
import pytest
import websockets
from doubles import wait_until
from prometheus_text import read_samples

from streamer.errors import CapacityError
from streamer.gateway.app import build_app
from streamer.gateway.config import GatewayConfig
from streamer.metrics import ALL_STATES
from streamer.prometheus_meter import PrometheusMeter

pytestmark = pytest.mark.unit


async def scrape(http: httpx2.AsyncClient):
    answer = await http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return read_samples(answer.text)


def states(found, stream="cam"):
    key = "streamer_source_state{{state={},stream={}}}"
    return [state for state in ALL_STATES if found.get(key.format(state, stream))]


async def test_an_idle_gateway_shows_its_zeros(http):
    found = await scrape(http)
    assert found["streamer_subscribers"] == 0
    assert found["streamer_store_up"] == 1
    assert found["streamer_feed_gaps_total{reason=slow_subscriber}"] == 0


async def test_each_stream_is_in_one_state(gateway, http):
    lease = await gateway.stream("cam")
    assert states(await scrape(http)) == ["starting"]
    await gateway.report({"state": "stalled"})
    found = await scrape(http)
    assert states(found) == ["stalled"]
    assert found["streamer_source_state{state=live,stream=cam}"] == 0
    await gateway.store.finish_stream("cam", lease=lease.token, outcome="failed")
    assert states(await scrape(http)) == ["failed"]
    await gateway.stream("other")
    await gateway.store.set_desired("other", "paused")
    assert states(await scrape(http), "other") == ["paused"]


async def test_a_deleted_stream_leaves_no_series(gateway, http):
    await gateway.stream("cam")
    gateway.backend.metrics.observe("streamer_surprise", 0.5, stream="cam")
    assert "streamer_surprise{stream=cam}" in await scrape(http)
    await gateway.store.delete_stream("cam")
    assert not [key for key in await scrape(http) if "cam" in key]


async def test_many_streams_are_all_there(gateway, http):
    for number in range(70):
        await gateway.stream(f"cam{number}")
    found = await scrape(http)
    assert all(states(found, f"cam{number}") for number in range(70))


@pytest.mark.parametrize("hangs", [False, True])
async def test_it_answers_without_a_store(make_gateway, hangs, monkeypatch):
    gateway = make_gateway(config=GatewayConfig(store_timeout_s=0.05))
    await gateway.stream("cam")

    async def lost(**_):
        if hangs:
            await asyncio.Event().wait()
        raise CapacityError("The store is away.")

    async with gateway.http() as http:
        await scrape(http)
        monkeypatch.setattr(gateway.store, "list_streams", lost)
        found = await scrape(http)
    assert found["streamer_store_up"] == 0
    assert states(found) == ["starting"]


async def test_subscribers_and_gaps_are_counted(gateway, http):
    await gateway.stream("cam")
    await gateway.append(3)
    async with (
        gateway.served() as address,
        websockets.connect(f"ws://{address}/v1/streams/cam/feed?after=gone:2") as socket,
    ):
        while '"gap"' not in await socket.recv():
            pass
        found = await scrape(http)
        assert found["streamer_subscribers"] == 1
        assert found["streamer_feed_gaps_total{reason=restart}"] == 1
    await wait_until(lambda: not gateway.app.state.hub.subscribers)
    assert (await scrape(http))["streamer_subscribers"] == 0


async def test_a_cluster_is_told_too(make_gateway):
    also = PrometheusMeter()
    gateway = make_gateway()
    app = build_app(replace(gateway.backend, also=also))
    await gateway.stream("cam")
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as http:
        with app.state.hub.admit(""):
            assert (await scrape(http))["streamer_subscribers"] == 1
    assert b"streamer_subscribers 0.0" in also.exposition()
    assert b'stream="cam"' not in also.exposition()
