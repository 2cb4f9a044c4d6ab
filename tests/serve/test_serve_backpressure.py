"""A fact of Ray 2.60 that `docs/operations.md` tells: its proxy does not hold back a replica whose
client stopped reading. Once this fails, the bounds of slow clients hold on Ray, too."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from ray import serve

pytestmark = pytest.mark.serve

WAIT_S = 30.0
PIECES = 300
PIECE = 100_000


class Flood:
    """Sends 30 MB, far more than the buffers of a connection hold, and counts them."""

    def __init__(self) -> None:
        self._sent = 0

    def __serve_build_asgi_app__(self) -> FastAPI:
        app = FastAPI()

        @app.get("/sent")
        async def sent() -> int:
            return self._sent

        @app.get("/pieces")
        async def pieces() -> StreamingResponse:
            return StreamingResponse(self._pieces())

        return app

    async def _pieces(self) -> AsyncIterator[bytes]:
        for _ in range(PIECES):
            yield b"x" * PIECE
            self._sent += 1


@pytest.fixture
def url(cluster: str) -> Iterator[str]:
    options = {"ray_actor_options": {"num_cpus": 0.1}, "graceful_shutdown_timeout_s": 1}
    flood = serve.deployment(**options)(serve.ingress()(Flood)).bind()
    serve.run(flood, name="flood", route_prefix="/flood")
    yield f"{cluster}/flood"
    serve.delete("flood")


async def test_a_client_that_reads_nothing_holds_nothing_back(url: str) -> None:
    parts = urlsplit(url)
    with contextlib.closing(socket.socket()) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((parts.hostname, parts.port))
        slow.sendall(b"GET /flood/pieces HTTP/1.1\r\nHost: x\r\n\r\n")
        async with httpx2.AsyncClient() as client, asyncio.timeout(WAIT_S):
            while (await client.get(f"{url}/sent")).json() < PIECES:  # noqa: ASYNC110
                await asyncio.sleep(0.1)  # over HTTP there is no event
