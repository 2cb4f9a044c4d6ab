"""A camera whose clock is an hour wrong, seen from outside: feed, API, metrics, command line."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
import websockets
from local_service import started_service
from prometheus_text import read_samples
from rtsp_camera import RtspCamera
from rtsp_reports import ReportProxy

from streamer.clock import parse_utc

pytestmark = pytest.mark.e2e

HOUR = 3600.0
WAIT_S = 30.0


async def until(socket: Any, **expected: object) -> dict[str, Any]:
    """The next message with these values."""
    async with asyncio.timeout(WAIT_S):
        while True:
            message: dict[str, Any] = json.loads(await socket.recv())
            if expected.items() <= message.items():
                return message


def show(url: str) -> str:
    command = [str(Path(sys.executable).with_name("streamer")), "streams", "show", "door"]
    environment = {**os.environ, "STREAMER_SERVER": url}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=True
    ).stdout


async def test_an_hour_wrong_and_set_right_while_it_is_watched() -> None:
    with (
        started_service(STREAMER_SOURCES__ALLOWED_CIDRS="127.0.0.0/8") as service,
        RtspCamera(report_every_s=0.4) as camera,
        ReportProxy(camera.port, ahead_s=-HOUR) as proxy,
    ):
        url = service.url
        async with httpx2.AsyncClient(base_url=url, timeout=20) as client:
            body = {
                "id": "door",
                "source": f"rtsp://127.0.0.1:{proxy.port}/cam",
                "horizons_s": [0.5],
                "sampling": {"fps": 8, "stride_s": 0.5, "frames": 16},
            }
            answer = await client.post("/v1/streams", json=body)
            assert answer.status_code == 201, answer.text
            async with websockets.connect(
                f"ws{url.removeprefix('http')}/v1/streams/door/feed?after=0&stats=true",
                subprotocols=["streamer.v1"],
            ) as socket:
                told = await until(socket, reason="clock_skewed")
                assert told["state"] == "live"
                assert "behind ours" in told["detail"] and "NTP" in told["detail"]
                event = await until(socket, type="anticipation", capture_clock="media")
                while "clock_skewed" not in event["notes"]:
                    event = await until(socket, type="anticipation")
                late_s = datetime.now(UTC).timestamp() - parse_utc(event["capture_time"]) / 1e9
                assert 0 < late_s < 10
                stats = await until(socket, type="stats", clock_why="skewed")
                assert stats["clock_offset_s"] == pytest.approx(-HOUR, abs=2.0)
                view = (await client.get("/v1/streams/door")).json()
                assert (view["state"], view["clock"], view["clock_why"]) == (
                    "live",
                    "media",
                    "skewed",
                )
                samples = read_samples((await client.get("/metrics")).text)
                offset_s = samples["streamer_source_clock_offset_seconds{stream=door}"]
                assert offset_s == pytest.approx(-HOUR, abs=2.0)
                assert "skewed" in await asyncio.to_thread(show, url)
                proxy.ahead_s = 0.0
                await until(socket, reason="clock_ok")
                event = await until(socket, type="anticipation", capture_clock="rtcp")
                assert "clock_skewed" not in event["notes"]
        assert service.interrupt() == 0
