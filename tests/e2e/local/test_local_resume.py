"""A real RTSP camera, added by the command line; a plain client is cut off anywhere and resumes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
import websockets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from local_service import run_streamer, started_service
from rtsp_camera import RtspCamera

pytestmark = pytest.mark.e2e

ENOUGH = 12
"""Events that the log holds before clients are cut off; it grows on meanwhile."""


@pytest.fixture(scope="module")
def feed() -> Iterator[str]:
    """Feed of a camera that was added as the README says, with some events in it."""
    allowed = {"STREAMER_SOURCES__ALLOWED_CIDRS": "127.0.0.0/8"}
    with RtspCamera() as camera, started_service(**allowed) as service:
        sampling = ("--fps", "8", "--frames", "16", "--stride", "0.25", "--horizons", "0.25,0.5")
        done = run_streamer(
            "streams", "add", camera.url, "--id", "door", "--server", service.url, *sampling
        )
        assert done.returncode == 0, done.stderr
        feed = f"ws{service.url.removeprefix('http')}/v1/streams/door/feed"
        asyncio.run(read(feed, cuts=[ENOUGH]))
        yield feed


async def read(feed: str, *, cuts: list[int]) -> list[dict[str, Any]]:
    """Retained events from the first one on; the socket is torn after so many of them each."""
    events: list[dict[str, Any]] = []
    for cut in cuts:
        after = events[-1]["id"] if events else "0"
        async with websockets.connect(
            f"{feed}?after={after}", subprotocols=[websockets.Subprotocol("streamer.v1")]
        ) as socket:
            upto = len(events) + cut
            while len(events) < upto:
                message = json.loads(await asyncio.wait_for(socket.recv(), 20))
                assert message["type"] != "gap", message
                if "seq" in message:
                    events.append(message)
            socket.transport.abort()  # no goodbye: as when a cable is pulled
    return events


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(cuts=st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_cut_off_anywhere_the_sequence_is_whole(feed: str, cuts: list[int]) -> None:
    events = asyncio.run(read(feed, cuts=cuts))
    assert [event["seq"] for event in events] == list(range(1, sum(cuts) + 1))
    times = [event["capture_time"] for event in events if event["type"] == "anticipation"]
    assert times == sorted(set(times))
