"""A real RTSP camera through the whole local service: it fails and comes back, the feed goes on."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
import websockets
from local_service import started_service
from rtsp_camera import RtspCamera

from streamer.events.schema import server_message

pytestmark = pytest.mark.e2e

SETTINGS = {
    "STREAMER_SOURCES__ALLOWED_CIDRS": "127.0.0.0/8",
    "STREAMER_RTSP__READ_TIMEOUT_S": "1.5",
    "STREAMER_RTSP__STALL_S": "0.5",
    "STREAMER_RTSP__UNAVAILABLE__FIRST_S": "0.2",
    "STREAMER_RTSP__UNAVAILABLE__CAP_S": "0.5",
}
PASSWORD = "se:cr@et"


class Feed:
    """Everything retained that came, in order, each valid."""

    def __init__(self, socket: Any) -> None:
        self.events: list[dict[str, Any]] = []
        self._socket = socket

    async def until(self, **expected: str) -> dict[str, Any]:
        """The next event with these values."""
        while True:
            message = await self._socket.recv()
            assert "se:cr" not in message and "se%3Acr" not in message
            server_message.validate_json(message)
            event: dict[str, Any] = json.loads(message)
            if "seq" not in event:
                continue
            self.events.append(event)
            if expected.items() <= event.items():
                return event


async def test_a_camera_dies_and_comes_back() -> None:
    camera = RtspCamera(user="door", password=PASSWORD)
    with started_service(**SETTINGS) as service, camera:
        url = service.url
        async with httpx2.AsyncClient(base_url=url, timeout=20) as client:
            body = {
                "id": "door",
                "source": camera.url,
                "horizons_s": [0.5],
                "sampling": {"fps": 8, "stride_s": 0.5, "frames": 16},
            }
            answer = await client.post("/v1/streams", json=body)
            assert answer.status_code == 201, answer.text
            async with websockets.connect(
                f"ws{url.removeprefix('http')}/v1/streams/door/feed?after=0",
                subprotocols=["streamer.v1"],
            ) as socket:
                feed = Feed(socket)
                filling = await feed.until(state="live", reason="filling")
                assert filling["need"] == 16
                first = await feed.until(type="anticipation")
                second = await feed.until(type="anticipation")
                assert second["surprise"]["predicted_by"] == first["seq"]
                assert 0 < second["latency_ms"]["total"] < 5000
                camera.kill()
                await feed.until(state="reconnecting")
                camera.start()
                await feed.until(state="live", reason="filling")
                again = await feed.until(type="anticipation")
                assert again["surprise"] is None  # nothing foretold this connection
                assert again["window"]["first_frame"] > second["window"]["last_frame"]
                await feed.until(type="anticipation")
            seqs = [event["seq"] for event in feed.events]
            assert seqs == list(range(1, len(seqs) + 1))
            shown = await client.get("/v1/streams/door")
            assert "se:cr" not in shown.text and "se%3Acr" not in shown.text
            assert (shown.json()["state"], shown.json()["generation"]) == ("live", 1)
        assert service.interrupt() == 0
        assert not [line for line in service.lines if "se:cr" in line or "se%3Acr" in line]


async def test_a_camera_that_nobody_answers_for_is_told_with_the_next_try() -> None:
    camera = RtspCamera()
    with camera:
        gone = camera.url
    with started_service(**SETTINGS) as service:
        async with httpx2.AsyncClient(base_url=service.url, timeout=20) as client:
            await client.post("/v1/streams", json={"id": "gone", "source": gone})
        async with websockets.connect(
            f"ws{service.url.removeprefix('http')}/v1/streams/gone/feed?after=0",
            subprotocols=["streamer.v1"],
        ) as socket:
            told = await Feed(socket).until(state="reconnecting")
        assert told["retry_in_s"] > 0 and told["detail"]
