"""A feed that is refused for its subprotocol is an answer, not an error of the server."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("path", ["/v1/streams/cam/feed", "/v1/feed"])
async def test_another_subprotocol_is_refused_in_order(gateway, path):
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append((message["type"], message.get("code")))

    scope = {
        "type": "websocket",
        "path": path,
        "query_string": b"stream=cam",
        "headers": [],
        "subprotocols": ["soap"],
    }
    await gateway.app(scope, receive, send)
    assert sent == [("websocket.accept", None), ("websocket.close", 4400)]
