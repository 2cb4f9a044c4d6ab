"""`streamer serve --runtime local` in a real process; its clients know only the contract."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import websockets
from local_service import Service, run_streamer, started_service

from streamer.events.schema import server_message

pytestmark = pytest.mark.e2e

SMALL = {"STREAMER_SAMPLING__FRAMES": "64", "STREAMER_SAMPLING__STRIDE_S": "0.5"}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with started_service("--demo", **SMALL) as service:
        yield service


@asynccontextmanager
async def feed(service: Service, stream: str, after: str) -> AsyncIterator[Any]:
    url = service.url.replace("http", "ws")
    async with websockets.connect(
        f"{url}/v1/streams/{stream}/feed?after={after}", subprotocols=["streamer.v1"]
    ) as socket:
        yield socket


async def retained(socket: Any, count: int) -> list[dict[str, Any]]:
    """The next events of the log, each valid against the schema."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        message = await socket.recv()
        server_message.validate_json(message)
        event = json.loads(message)
        if "seq" in event:
            found.append(event)
    return found


async def test_the_demo_is_anticipated(service: Service) -> None:
    async with feed(service, "demo", "0") as socket:
        events = await retained(socket, 7)
    assert [e["seq"] for e in events] == list(range(1, 8))
    states = [(e["state"], e["reason"]) for e in events if e["type"] == "stream.state"]
    assert states[0] == ("starting", "opening")
    assert states[-1] == ("live", "")
    first, second, *_ = [e for e in events if e["type"] == "anticipation"]
    assert first["surprise"] is None
    assert second["surprise"]["predicted_by"] == first["seq"]
    assert [f["horizon_s"] for f in first["futures"]] == [0.5, 1.0, 2.0]
    assert first["capture_clock"] == "media"
    assert (first["model"]["trained"], "untrained" in first["notes"]) == (False, True)
    latency = dict(second["latency_ms"])
    total = latency.pop("total")
    assert sum(latency.values()) == pytest.approx(total, abs=0.01)
    assert 0 < total < 30_000


async def test_a_client_that_comes_back_misses_nothing(service: Service) -> None:
    async with feed(service, "demo", "0") as socket:
        before = await retained(socket, 5)
    async with feed(service, "demo", before[-1]["id"]) as socket:
        after = await retained(socket, 3)
    assert [e["seq"] for e in before + after] == list(range(1, 9))


async def test_a_camera_is_added_paused_continued_and_removed(service: Service) -> None:
    async with httpx2.AsyncClient(base_url=service.url, timeout=20) as client:
        body = {"id": "yard", "source": "synthetic:bounce?seed=3&size=64"}
        answer = await client.post("/v1/streams", json=body)
        assert answer.status_code == 201, answer.text
        async with feed(service, "yard", "0") as socket:
            await event_of(socket, type="anticipation")
            await client.patch("/v1/streams/yard", json={"state": "paused"})
            paused = await event_of(socket, state="paused")
            await client.patch("/v1/streams/yard", json={"state": "live"})
            again = await event_of(socket, type="anticipation")
        assert again["seq"] > paused["seq"]
        shown = (await client.get("/v1/streams/yard")).json()
        assert shown["state"] == "live"
        assert shown["owner"].startswith("local-")
        assert (await client.delete("/v1/streams/yard")).status_code == 204
        assert (await client.get("/v1/streams/yard")).status_code == 404


async def event_of(socket: Any, **expected: str) -> dict[str, Any]:
    while True:
        (event,) = await retained(socket, 1)
        if expected.items() <= event.items():
            return event


async def test_a_camera_that_is_not_there_is_told_and_tried_again(service: Service) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with httpx2.AsyncClient(base_url=service.url, timeout=20) as client:
        body = {"id": "gone", "source": f"rtsp://user:secret@127.0.0.1:{port}/x"}
        answer = await client.post("/v1/streams", json=body)
        assert answer.status_code == 403, answer.text  # private addresses must be allowed first
        assert "secret" not in answer.text


async def test_readiness_and_health(service: Service) -> None:
    async with httpx2.AsyncClient(base_url=service.url, timeout=20) as client:
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["ready"]) == (200, True), ready.text
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/version")).json()["runtime"] == "local"


def test_a_taken_port_is_explained() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_streamer("serve", "--runtime", "local", "--port", str(port))
    assert done.returncode == 2
    assert f"Port {port}" in done.stderr and "--port" in done.stderr
    assert "Traceback" not in done.stderr


async def test_ctrl_c_drains_and_says_goodbye() -> None:
    with started_service("--demo", **SMALL) as service:
        service.expect(r"demo #\d+ .*surprise")
        async with feed(service, "demo", "0") as socket:
            await retained(socket, 1)
            service.process.send_signal(2)
            closing = None
            with pytest.raises(websockets.ConnectionClosed) as closed:
                while True:
                    message = json.loads(await socket.recv())
                    closing = message if message["type"] == "session.closing" else closing
        assert closing is not None and closing["resume_after"]["demo"]
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
        assert service.process.wait(30) == 0
        service.expect("draining")
        assert not [line for line in service.lines if "Traceback" in line]
