"""Readiness tells the truth, with a reason."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from streamer.errors import CapacityError
from streamer.gateway.config import GatewayConfig

pytestmark = pytest.mark.unit


async def _failed(http):
    answer = await http.get("/readyz")
    body = answer.json()
    failed = {check["name"] for check in body["checks"] if not check["ok"]}
    assert answer.status_code == (503 if failed else 200)
    assert body["ready"] is not bool(failed)
    return failed


async def test_ready_only_with_everybody_there(gateway, http):
    missing = set(gateway.kinds) | {"model"}
    assert await _failed(http) == missing
    for kind in gateway.kinds:
        await gateway.announce(kind)
        missing -= {kind}
        assert await _failed(http) == (
            missing if {"encoder", "rollout"} & missing else missing - {"model"}
        )
    gateway.backend.draining.set()
    assert await _failed(http) == {"draining"}


async def test_other_weights_on_each_side_are_not_ready(gateway, http):
    await gateway.announce("ingest", "supervisor", "encoder")
    await gateway.announce("rollout", model=replace(gateway.info, fingerprint="ffffffffffff"))
    assert await _failed(http) == {"model"}


async def test_store_that_hangs_or_fails(make_gateway, monkeypatch):
    gateway = make_gateway(config=GatewayConfig(store_timeout_s=0.05))

    async def hangs(kind):
        await asyncio.Event().wait()

    async def fails(kind):
        raise CapacityError("The store is away.")

    async with gateway.http() as http:
        for broken in (hangs, fails):
            monkeypatch.setattr(gateway.store, "present", broken)
            assert await _failed(http) == {"store"}


async def test_alive_and_what_it_is(http):
    health = await http.get("/healthz")
    assert health.status_code == 200
    assert health.json()["checks"][0]["name"] == "event_loop"
    version = (await http.get("/version")).json()
    assert (version["version"], version["commit"], version["feed"]) == (
        "1.2.3", "abc", "streamer.v1",
    )  # fmt: skip


async def test_late_event_loop_is_unhealthy(make_gateway, monkeypatch):
    gateway = make_gateway(config=GatewayConfig(max_loop_lag_s=1e-9))
    async with gateway.http() as http:
        assert (await http.get("/healthz")).status_code == 503
