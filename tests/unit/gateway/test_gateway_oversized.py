"""A message too long closes as the contract says, over the service's own server."""

from __future__ import annotations

import pytest
from websockets import ConnectionClosedError
from websockets.asyncio.client import connect

from streamer.gateway.server import bound_socket, opened_gateway

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("length", "code"), [(20_000, 4400), (2_000_000, 1009)])
async def test_a_message_too_long(gateway, length, code):
    await gateway.stream()
    with bound_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        async with opened_gateway(gateway.backend, listening=listening, drain_s=1.0):
            url = f"ws://127.0.0.1:{port}/v1/streams/cam/feed"
            async with connect(url, proxy=None) as socket:
                await socket.send("{" + " " * length + "}")
                with pytest.raises(ConnectionClosedError) as caught:
                    while True:
                        await socket.recv()
    assert caught.value.rcvd.code == code
