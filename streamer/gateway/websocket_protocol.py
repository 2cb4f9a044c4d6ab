"""uvicorn's WebSocket connection, with one difference: a close never waits for room.

uvicorn lets every message wait until the connection's buffer has room. Whoever is closed because it
takes nothing would then never get its close code: the wait is given up and the connection ends
without one (1006). A close frame is a hundred bytes at most; it goes behind what is in the buffer,
and a client that reads again within ten seconds finds it there. One that reads later answers a ping
on a connection that is gone, and sees 1006. On Ray the proxy holds the connection instead.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

__all__ = ["FeedProtocol"]


class FeedProtocol(WebSocketsSansIOProtocol):
    """Give it to `uvicorn.Config` as `ws`."""

    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.close":
            self.writable.set()
        await super().send(message)
