"""Subscribers that stop reading, on real sockets whose buffers are full: what they lose, what they
cost, and that nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket

import pytest
import websockets
from websockets.asyncio.client import connect

from streamer.events.config import FeedConfig

pytestmark = pytest.mark.unit

OUTBOX = 8
COUNT = 60
BULK = "x" * 200_000
BUFFERS = 8_000_000
"""More than the kernel keeps for a loopback connection, less than all events."""
WAIT_S = 20.0


def _narrow_socket():
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.setblocking(False)
    return raw


async def _connected(host):
    raw = _narrow_socket()
    name, _, port = host.rpartition(":")
    await asyncio.get_running_loop().sock_connect(raw, (name, int(port)))
    return raw


class WebSocketReader:
    """Reads nothing unless asked: the library stops after two messages."""

    def __init__(self, socket):
        self._socket = socket

    async def next(self):
        return json.loads(await self._socket.recv())


class EventReader:
    """The same over Server-Sent Events."""

    def __init__(self, reader):
        self._reader = reader

    async def next(self):
        data = b""
        while not data.startswith(b"data: "):
            data = await self._reader.readline()
            if not data:
                raise EOFError
        return json.loads(data[6:])


@contextlib.asynccontextmanager
async def _websocket(host):
    url = f"ws://{host}/v1/streams/cam/feed"
    raw = await _connected(host)
    async with connect(
        url, subprotocols=["streamer.v1"], sock=raw, max_queue=1, compression=None, proxy=None
    ) as opened:
        yield WebSocketReader(opened)


@contextlib.asynccontextmanager
async def _event_stream(host):
    raw = await _connected(host)
    reader, writer = await asyncio.open_connection(sock=raw, limit=300_000)
    request = "GET /v1/streams/cam/feed HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"
    writer.write(request.encode())
    try:
        yield EventReader(reader)
    finally:
        writer.close()


KINDS = {"websocket": _websocket, "sse": _event_stream}


async def _read_all(reader, seqs):
    while True:
        message = await reader.next()
        if "seq" in message:
            seqs.append(message["seq"])


async def _until(holds):
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 - what it looks at tells no event
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def _two_subscribers(gateway, kind):
    """A server, one subscriber that has read its greeting and stops, and one that reads on."""
    await gateway.stream()
    seqs = []
    async with gateway.served() as host, KINDS[kind](host) as slow, _websocket(host) as quick:
        assert (await slow.next())["type"] == "session.created"
        assert (await quick.next())["type"] == "session.created"
        reading = asyncio.ensure_future(_read_all(quick, seqs))
        try:
            yield slow, seqs
        finally:
            reading.cancel()


def _gaps(gateway):
    text = gateway.backend.metrics.exposition().decode()
    row = 'streamer_feed_gaps_total{reason="slow_subscriber"} '
    return float(text.split(row)[1].split("\n")[0])


async def _append(gateway, seqs, *, until=lambda: False):
    """Each event once the quick subscriber has the one before: it never falls behind."""
    for number in range(COUNT):
        if until():
            return
        await gateway.append(reason=BULK)
        await _until(lambda: len(seqs) > number)  # noqa: B023 - it is done with before the next


@pytest.mark.parametrize("kind", KINDS)
async def test_the_oldest_are_dropped_and_one_gap_says_so(make_gateway, kind):
    gateway = make_gateway(feed=FeedConfig(outbox=OUTBOX, slow_grace_s=60.0))
    async with _two_subscribers(gateway, kind) as (slow, seqs):
        await _append(gateway, seqs)
        assert seqs == list(range(1, COUNT + 1))
        before, gaps, after = [], [], []
        async with asyncio.timeout(WAIT_S):
            while not after or after[-1] < COUNT:
                message = await slow.next()
                if message["type"] == "gap":
                    gaps.append(message)
                elif "seq" in message:
                    (after if gaps else before).append(message["seq"])
    assert before == list(range(1, len(before) + 1))
    assert len(before) * len(BULK) < BUFFERS
    assert [(g["reason"], g["from_seq"]) for g in gaps] == [("slow_subscriber", before[-1] + 1)]
    assert after == list(range(gaps[0]["to_seq"] + 1, COUNT + 1))
    assert len(after) == OUTBOX
    assert _gaps(gateway) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_one_that_takes_nothing_is_cut(make_gateway, kind):
    gateway = make_gateway(feed=FeedConfig(outbox=OUTBOX, slow_grace_s=0.2))
    hub = gateway.app.state.hub
    async with _two_subscribers(gateway, kind) as (slow, seqs):
        assert hub.subscribers == 2
        await _append(gateway, seqs, until=lambda: hub.subscribers == 1)
        await _until(lambda: hub.subscribers == 1)
        with pytest.raises((websockets.ConnectionClosed, EOFError, ConnectionResetError)) as caught:
            async with asyncio.timeout(WAIT_S):
                while True:
                    await slow.next()
        if kind == "websocket":
            assert caught.value.rcvd.code == 4408
        await gateway.append()
        count = len(seqs)
        await _until(lambda: len(seqs) > count)
    assert seqs == list(range(1, len(seqs) + 1))
