"""A camera's stream is changed while it runs; the camera notices only what it must."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from feed_follower import Follower, following
from local_service import Service, run_streamer, started_service
from rtsp_camera import RtspCamera

pytestmark = pytest.mark.e2e

SOON_S = 60.0
AGAIN_S = 10.0
"""To connect and fill a clip of two seconds."""
STREAM = "door"


def ports(camera: RtspCamera) -> set[str]:
    """Client ports of the open connections to a camera."""
    local = f"0100007F:{camera.port:04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {row[2] for row in rows if row[1] == local and row[3] == "01"}


async def change(service: Service, **changes: Any) -> dict[str, Any]:
    async with httpx2.AsyncClient(base_url=service.url, timeout=20) as http:
        answer = await http.patch(f"/v1/streams/{STREAM}", json=changes)
        assert answer.status_code == 200, answer.text
        view: dict[str, Any] = answer.json()
        return view


def openings(door: Follower) -> int:
    return sum(event.get("reason") == "opening" for event in door.events)


async def test_horizons_leave_the_camera_alone_and_a_source_is_another_camera() -> None:
    with (
        RtspCamera() as front,
        RtspCamera() as back,
        started_service(STREAMER_SOURCES__ALLOWED_CIDRS="127.0.0.0/8") as service,
    ):
        body = {
            "id": STREAM,
            "source": front.url,
            "horizons_s": [0.25],
            "sampling": {"fps": 8, "frames": 16, "stride_s": 0.5},
        }
        async with httpx2.AsyncClient(base_url=service.url, timeout=20) as http:
            assert (await http.post("/v1/streams", json=body)).status_code == 201
        async with following(service.url, STREAM) as door:
            await door.wait_more(2, timeout_s=SOON_S)
            connection = ports(front)
            assert len(connection) == 1

            done = run_streamer(
                *("streams", "set", STREAM, "--horizons", "0.25,1", "--server", service.url)
            )
            assert done.returncode == 0, done.stderr
            await door.wait_for(
                lambda: [f["horizon_s"] for f in door.anticipations[-1]["futures"]] == [0.25, 1.0],
                timeout_s=AGAIN_S,
            )
            await door.wait_more(2, timeout_s=AGAIN_S)
            assert ports(front) == connection
            assert openings(door) == 1

            asked = time.monotonic()
            await change(service, source=back.url)
            await door.wait_for(lambda: openings(door) == 2, timeout_s=AGAIN_S)
            opened_s = time.monotonic() - asked
            waited_s = await door.wait_more(2, timeout_s=AGAIN_S)
            print(f"another camera: opened {opened_s:.1f} s, next event {waited_s:.1f} s later")
            assert opened_s < 2.0  # nothing broke, so nothing waits
            assert (len(ports(front)), len(ports(back))) == (0, 1)

            await change(service, state="paused")
            await change(service, horizons_s=[0.5])
            await door.wait_for(lambda: door.events[-1].get("state") == "paused", timeout_s=AGAIN_S)
            assert len(ports(back)) == 0
            await change(service, state="live")
            await door.wait_more(1, timeout_s=AGAIN_S)
            assert [f["horizon_s"] for f in door.anticipations[-1]["futures"]] == [0.5]
