"""Two readers of one feed: one keeps up, one does not. Both come back after whatever ends them."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any
from urllib.parse import urlencode, urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from streamer.bench.tally import Tally
from streamer.clock import wall_ns

__all__ = ["FeedReader"]

_AGAIN_S = 0.5
_ABNORMAL = 1006
_SUBPROTOCOL = Subprotocol("streamer.v1")
# A reader that does not read: the kernel takes little for it on this side, and on the server's side
# it sizes its buffer by the segments we ask for, which on loopback would make megabytes.
_BUFFER_BYTES = 4096
_SEGMENT_BYTES = 536


class FeedReader:
    """Follows one stream for ever.

    Args:
        base_url: http URL of the server.
        stream: whose feed.
        headers: of the opening request.
        pause_s: after each message. With one, the socket has a small buffer too, so that the
            server is the one who has to wait.
    """

    def __init__(
        self, base_url: str, stream: str, *, headers: dict[str, str], pause_s: float = 0.0
    ) -> None:
        self.tally = Tally()
        self._url = f"ws{base_url.removeprefix('http')}/v1/streams/{stream}/feed"
        self._headers = headers
        self._pause_s = pause_s

    async def run(self) -> None:
        """Cancellation is safe; the tally stays."""
        while True:
            try:
                async with await self._connected() as feed:
                    await self._read(feed)
            except ConnectionClosed as closed:
                self.tally.cuts[closed.rcvd.code if closed.rcvd else _ABNORMAL] += 1
            except (OSError, WebSocketException):
                self.tally.cuts[_ABNORMAL] += 1
            await asyncio.sleep(_AGAIN_S)

    async def _read(self, feed: ClientConnection) -> None:
        while True:
            message: dict[str, Any] = json.loads(await feed.recv())
            self.tally.receive(message, now_ns=wall_ns())
            if self._pause_s:
                await asyncio.sleep(self._pause_s)

    async def _connected(self) -> connect:
        after = self.tally.cursor
        url = self._url if after is None else f"{self._url}?{urlencode({'after': after})}"
        options: dict[str, Any] = {}
        if self._pause_s:
            # One that reads once in seconds is late with its pongs as well.
            options = {"sock": await self._small_socket(), "max_queue": 1, "ping_interval": None}
        return connect(
            url,
            additional_headers=self._headers,
            subprotocols=[_SUBPROTOCOL],
            max_size=2**22,
            close_timeout=1.0,
            compression=None,
            proxy=None,
            **options,
        )

    async def _small_socket(self) -> socket.socket:
        parts = urlsplit(self._url)
        port = parts.port or (443 if parts.scheme == "wss" else 80)
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        small = socket.socket(family, kind, protocol)
        try:
            small.setblocking(False)
            small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
            small.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT_BYTES)
            await loop.sock_connect(small, address)
        except BaseException:
            small.close()
            raise
        return small
