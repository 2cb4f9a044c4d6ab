"""The close code reaches a subscriber whose buffers were full, once it reads what is in them."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
import websockets
from websockets.asyncio.client import connect

from streamer.bench.tally import Tally
from streamer.events.config import FeedConfig

pytestmark = pytest.mark.unit

WAIT_S = 20.0
BULK = "x" * 4000
COUNT = 200


async def _small_socket(host):
    """Small at both ends: the server's kernel sizes its buffer by our segments."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    raw.setblocking(False)
    name, _, port = host.rpartition(":")
    await asyncio.get_running_loop().sock_connect(raw, (name, int(port)))
    return raw


async def test_one_that_took_nothing_finds_4408_behind_what_was_sent(make_gateway, monkeypatch):
    monkeypatch.setattr("streamer.gateway.feed._GOODBYE_S", 0.1)
    gateway = make_gateway(feed=FeedConfig(outbox=2, slow_grace_s=0.2))
    hub = gateway.app.state.hub
    await gateway.stream()
    async with gateway.served() as host:
        options = {"sock": await _small_socket(host), "max_queue": 1, "ping_interval": None}
        url = f"ws://{host}/v1/streams/cam/feed"
        async with connect(
            url, subprotocols=["streamer.v1"], compression=None, proxy=None, **options
        ) as slow:
            read = Tally()
            read.receive(json.loads(await slow.recv()), now_ns=0)
            async with asyncio.timeout(WAIT_S):
                for _ in range(COUNT):
                    await gateway.append(reason=BULK)
                    await asyncio.sleep(0.001)
                while hub.subscribers:  # noqa: ASYNC110  # it tells no event
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)  # nothing comes any more: the server is done with it
            with pytest.raises(websockets.ConnectionClosed) as caught:
                async with asyncio.timeout(WAIT_S):
                    while True:
                        read.receive(json.loads(await slow.recv()), now_ns=0)
    assert caught.value.rcvd is not None and caught.value.rcvd.code == 4408
    assert read.holes == read.repeats == 0  # on a busy machine it may have been told a gap, too
    assert 0 < read.events < COUNT
