"""Many streams and feeds at once, opened, used and closed again; what a process tree uses then."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx2
import websockets

from streamer.bench.processes import Usage, tree_usage

__all__ = ["Crowd", "small_stream", "steady_usage"]

_WAIT_S = 60.0
_STEADY_S = 20.0


def small_stream(*, seed: int) -> dict[str, Any]:
    """Body of a stream that costs little: four frames a clip, two clips a second."""
    return {
        "source": f"synthetic:bounce?seed={seed}&fps=8&size=32&preroll_s=2",
        "horizons_s": [0.5],
        "sampling": {"fps": 4, "frames": 4, "stride_s": 0.5},
    }


class Crowd:
    """So many streams and feeds, for one cycle after the other."""

    def __init__(self, base_url: str, *, streams: int, feeds: int) -> None:
        self._url = base_url
        self._streams = [f"crowd-{n}" for n in range(streams)]
        self._feeds = feeds

    async def cycle(self) -> None:
        """Open all, wait until each feed has had an anticipation, close all."""
        async with httpx2.AsyncClient(base_url=self._url, timeout=_WAIT_S) as http:
            for seed, stream in enumerate(self._streams):
                answer = await http.post(
                    "/v1/streams", json={"id": stream, **small_stream(seed=seed)}
                )
                assert answer.status_code == 201, answer.text
            async with asyncio.timeout(_WAIT_S), asyncio.TaskGroup() as group:
                for n in range(self._feeds):
                    group.create_task(self._read(self._streams[n % len(self._streams)]))
            for stream in self._streams:
                assert (await http.delete(f"/v1/streams/{stream}")).status_code == 204

    async def _read(self, stream: str) -> None:
        url = f"{self._url.replace('http', 'ws', 1)}/v1/streams/{stream}/feed?after=0"
        async with websockets.connect(
            url, subprotocols=[websockets.Subprotocol("streamer.v1")], open_timeout=_WAIT_S
        ) as socket:
            async for message in socket:
                if json.loads(message)["type"] == "anticipation":
                    return


async def steady_usage(root: int, *, at_most: Usage | None = None) -> Usage:
    """What the process and those below use, once that has stopped changing for two seconds.

    Args:
        at_most: its threads and files are waited for, as long as patience lasts; what is there then
            is returned all the same.
    """
    end = time.monotonic() + _STEADY_S
    seen: list[Usage] = []
    while True:
        seen.append(tree_usage(root))
        counts = {(each.processes, each.threads, each.fds) for each in seen[-5:]}
        is_low = at_most is None or (
            seen[-1].threads <= at_most.threads and seen[-1].fds <= at_most.fds
        )
        if (len(seen) >= 5 and len(counts) == 1 and is_low) or time.monotonic() > end:
            return seen[-1]
        await asyncio.sleep(0.5)
