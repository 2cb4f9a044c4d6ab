"""Records what a real service says on its feed, for the contract tests: every kind of message.

    python tests/record_feed.py NAME

writes ``NAME-live.ndjson`` and ``NAME-resumed.ndjson`` into ``tests/contract/events/recordings``,
one message a line as it came. Recordings of earlier versions stay: what was once valid remains so.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import websockets
from local_service import Service, started_service

__all__ = ["RECORDINGS", "record"]

RECORDINGS = Path(__file__).parent / "contract" / "events" / "recordings"
_WAIT_S = 60.0
_STREAM = "yard"
_SETTINGS = {
    "STREAMER_FEED__HEARTBEAT_S": "1",
    # An untrained model is surprised by nothing much; this makes episodes of its noise.
    "STREAMER_SERVING__SURPRISE__MIN_SAMPLES": "2",
    "STREAMER_SERVING__SURPRISE__ENTER_Z": "0.3",
    "STREAMER_SERVING__SURPRISE__EXIT_Z": "0.2",
    "STREAMER_SERVING__SURPRISE__CALM_CLIPS": "1",
    "STREAMER_SERVING__SURPRISE__UPDATE_CLIPS": "1",
}
_BODY = {
    "id": _STREAM,
    "source": "synthetic:bounce?seed=5&fps=15&size=64",
    "horizons_s": [0.5, 1.0],
    "sampling": {"fps": 4, "frames": 16, "stride_s": 0.5},
}

Message = dict[str, Any]


class _Recorder:
    """One connection, and every line it was sent."""

    def __init__(self, socket: Any) -> None:
        self.lines: list[str] = []
        self._socket = socket

    async def until(self, condition: Callable[[Message], bool]) -> None:
        """Record up to and with the first message that fits."""
        async with asyncio.timeout(_WAIT_S):
            while True:
                line = await self._socket.recv()
                self.lines.append(line)
                if condition(json.loads(line)):
                    return

    async def until_type(self, kind: str, **fields: Any) -> None:
        await self.until(lambda m: m["type"] == kind and fields.items() <= m.items())

    async def until_closed(self) -> None:
        async with asyncio.timeout(_WAIT_S):
            try:
                while True:
                    self.lines.append(await self._socket.recv())
            except websockets.ConnectionClosed:
                return

    async def say(self, **message: Any) -> None:
        await self._socket.send(json.dumps(message))


def _connected(service: Service, query: str) -> Any:
    url = f"{service.url.replace('http', 'ws', 1)}/v1/streams/{_STREAM}/feed?{query}"
    return websockets.connect(url, subprotocols=[websockets.Subprotocol("streamer.v1")])


async def record() -> dict[str, list[str]]:
    """``live``: a feed from the stream's first event to the service's end; ``resumed``: one that
    came back with a cursor of an epoch that is no more."""
    with started_service(**_SETTINGS) as service:
        async with httpx2.AsyncClient(base_url=service.url, timeout=20) as http:
            answer = await http.post("/v1/streams", json=_BODY)
            assert answer.status_code == 201, answer.text
            async with _connected(service, "after=0&stats=true") as socket:
                live = _Recorder(socket)
                await _talk(live, http)
                async with _connected(service, "after=dead00:7") as other:
                    resumed = _Recorder(other)
                    await resumed.until_type("gap")
                    await resumed.until_type("anticipation")
                service.process.send_signal(signal.SIGINT)
                await live.until_closed()
    return {"live": live.lines, "resumed": resumed.lines}


async def _talk(live: _Recorder, http: httpx2.AsyncClient) -> None:
    await live.until_type("anticipation")
    await live.until_type("stats")
    await live.say(type="session.update", id="m1", picture=True, stats=None)
    await live.until_type("session.updated", in_reply_to="m1")
    await live.until_type("latent.picture")
    await live.say(type="session.update", id="m2", picture=None)
    await live.say(type="no.such.type", id="m3")
    await live.until_type("error", in_reply_to="m3")
    await live.until_type("surprise", phase="begin")
    await live.until_type("surprise", phase="end")
    await live.say(type="feed.pause", id="m4")
    await live.until_type("heartbeat")
    await live.say(type="feed.continue", id="m5")
    await live.until_type("session.updated", in_reply_to="m5")
    await http.patch(f"/v1/streams/{_STREAM}", json={"state": "paused"})
    await live.until_type("stream.state", state="paused")
    await http.patch(f"/v1/streams/{_STREAM}", json={"state": "live"})
    await live.until_type("anticipation")


def main(name: str) -> None:
    RECORDINGS.mkdir(exist_ok=True)
    for part, lines in asyncio.run(record()).items():
        path = RECORDINGS / f"{name}-{part}.ndjson"
        path.write_text("\n".join(lines) + "\n")
        print(f"wrote {path}: {len(lines)} messages, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
