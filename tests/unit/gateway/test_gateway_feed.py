"""The feed through a real server and a real client on 127.0.0.1."""

from __future__ import annotations

import asyncio
import json

import pytest
import websockets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.asyncio.client import connect

from streamer.events.config import FeedConfig
from streamer.gateway.config import GatewayConfig

pytestmark = pytest.mark.unit

PROTOCOLS = ["streamer.v1"]


def _open(host, query="", *, stream="cam", subprotocols=PROTOCOLS, **options):
    url = f"ws://{host}/v1/streams/{stream}/feed{query}"
    return connect(url, subprotocols=subprotocols, proxy=None, **options)


async def _next(socket):
    return json.loads(await asyncio.wait_for(socket.recv(), 5))


async def _close_code(socket):
    with pytest.raises(websockets.ConnectionClosed) as caught:
        while True:
            await asyncio.wait_for(socket.recv(), 5)
    return caught.value.rcvd.code


async def test_history_then_live(gateway):
    await gateway.stream()
    await gateway.append(3)
    async with gateway.served() as host, _open(host, "?after=1") as socket:
        assert socket.subprotocol == "streamer.v1"
        created = await _next(socket)
        assert created["type"] == "session.created"
        assert created["streams"] == [
            {"stream": "cam", "epoch": "e1", "head_seq": 3, "first_seq": 1}
        ]
        assert [(await _next(socket))["id"] for _ in range(2)] == ["e1:2", "e1:3"]
        await gateway.append(reason="new")
        event = await _next(socket)
        assert (event["id"], event["seq"], event["reason"]) == ("e1:4", 4, "new")


async def test_from_now_on_without_a_cursor(gateway):
    await gateway.stream()
    await gateway.append(3)
    async with gateway.served() as host, _open(host) as socket:
        await _next(socket)
        await gateway.append()
        assert (await _next(socket))["seq"] == 4


async def test_options_and_refused_messages(gateway):
    await gateway.stream()
    async with gateway.served() as host, _open(host, subprotocols=None) as socket:
        await _next(socket)
        await socket.send('{"type":"session.update","id":"u1","types":["anticipation"]}')
        updated = await _next(socket)
        assert (updated["type"], updated["in_reply_to"]) == ("session.updated", "u1")
        await socket.send('{"type":"session.update","typos":[]}')
        assert (await _next(socket))["type"] == "error"
        await gateway.append(2)
        await gateway.append(kind="anticipation")
        assert (await _next(socket))["seq"] == 3


@pytest.mark.parametrize(
    ("options", "sent", "code"),
    [
        ({"stream": "none"}, None, 4404),
        ({"query": "?after=x:y:z"}, None, 4400),
        ({"query": "?strict=maybe"}, None, 4400),
        ({"query": "?afer=3"}, None, 4400),
        ({"query": "?after=77&strict=true"}, None, 4410),
        ({"subprotocols": ["soap"]}, None, 4400),
        ({}, "not json", 4400),
        ({}, b"binary", 4400),
        ({}, '{"type":"session.update","id":"' + "x" * 20_000 + '"}', 4400),
    ],
)
async def test_close_codes(gateway, options, sent, code):
    await gateway.stream()
    async with gateway.served() as host, _open(host, **options) as socket:
        if sent is not None:
            await socket.send(sent)
        assert await _close_code(socket) == code


async def test_too_many_subscribers(make_gateway):
    gateway = make_gateway(config=GatewayConfig(max_subscribers=1))
    await gateway.stream()
    async with gateway.served() as host, _open(host) as first:
        await _next(first)
        async with _open(host) as second:
            assert await _close_code(second) == 1013
        await first.close()
        await _until(lambda: gateway.app.state.hub.subscribers == 0)
        async with _open(host) as third:
            assert (await _next(third))["type"] == "session.created"


async def test_pages_of_other_sites_may_not_read(gateway):
    await gateway.stream()
    async with gateway.served() as host:
        with pytest.raises(websockets.InvalidStatus) as caught:
            await _open(host, origin="http://evil.example")
        refused = caught.value.response
        assert (refused.status_code, json.loads(refused.body)["code"]) == (403, "forbidden")
        assert "gateway.allowed_origins" in json.loads(refused.body)["detail"]
        async with _open(host, origin=f"http://{host}") as socket:
            assert (await _next(socket))["type"] == "session.created"


async def test_drain_says_where_to_resume(gateway):
    await gateway.stream()
    await gateway.append(2)
    async with gateway.served() as host:
        async with _open(host, "?after=0") as socket:
            assert [(await _next(socket))["type"] for _ in range(3)][1:] == ["stream.state"] * 2
            gateway.backend.draining.set()
            closing = await _next(socket)
            assert (closing["type"], closing["resume_after"]) == (
                "session.closing",
                {"cam": "e1:2"},
            )
            assert await _close_code(socket) == 1012
        async with _open(host) as socket:
            assert await _close_code(socket) == 1012


async def test_silence_is_filled(make_gateway):
    gateway = make_gateway(feed=FeedConfig(heartbeat_s=0.05))
    await gateway.stream()
    await gateway.append(2)
    async with gateway.served() as host, _open(host) as socket:
        await _next(socket)
        beat = await _next(socket)
        assert (beat["type"], beat["head_seq"]) == ("heartbeat", 2)


async def test_slow_subscriber_is_dropped_and_others_are_not_held(make_gateway):
    """The slow one never reads: its socket fills, then its outbox, then it goes."""
    gateway = make_gateway(feed=FeedConfig(outbox=8, slow_grace_s=0.3))
    await gateway.stream()
    filler = "x" * 60_000
    async with gateway.served() as host, _open(host) as quick:
        slow = await _open(host, max_queue=1, compression=None)
        await _next(quick)
        for seq in range(1, 201):
            await gateway.append(reason=filler)
            assert (await _next(quick))["seq"] == seq
        await _until(lambda: gateway.app.state.hub.subscribers == 1, append=gateway.append)
        slow.transport.abort()
        await gateway.append(reason="still here")
        message = await _next(quick)
        while message["reason"] != "still here":
            message = await _next(quick)


async def test_pause_of_a_reader_is_told_by_one_gap(make_gateway):
    gateway = make_gateway(feed=FeedConfig(outbox=8, slow_grace_s=60))
    await gateway.stream()
    async with gateway.served() as host, _open(host, max_queue=1, compression=None) as socket:
        for _ in range(200):
            await gateway.append(reason="x" * 60_000)
            await asyncio.sleep(0)
        await _next(socket)
        seen, gaps = [], []
        while not seen or seen[-1] < 200:
            message = await _next(socket)
            if message["type"] == "gap":
                gaps.append((message["from_seq"], message["to_seq"], message["reason"]))
            else:
                seen.append(message["seq"])
    ((first, last, reason),) = gaps
    assert reason == "slow_subscriber"
    assert sorted([*seen, *range(first, last + 1)]) == list(range(1, 201))


async def test_client_that_vanishes_is_noticed(gateway):
    await gateway.stream()
    async with gateway.served() as host:
        socket = await _open(host)
        await _next(socket)
        socket.transport.abort()
        await _until(lambda: gateway.app.state.hub.subscribers == 0)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    cuts=st.lists(st.integers(1, 30), max_size=6), bursts=st.lists(st.integers(1, 9), max_size=9)
)
def test_cut_anywhere_and_resumed_the_sequence_is_whole(make_gateway, cuts, bursts):
    async def run():
        gateway = make_gateway(feed=FeedConfig(outbox=16, read_limit=4))
        await gateway.stream()
        total = 60
        async with gateway.served() as host, asyncio.TaskGroup() as group:
            writer = group.create_task(_write(gateway, total=total, bursts=bursts))
            seen, cursor = [], "0"
            for cut in [*cuts, total]:
                socket = await _open(host, f"?after={cursor}&strict=true")
                while cut and len(seen) < total:
                    message = await _next(socket)
                    if "seq" in message:
                        seen.append(message["seq"])
                        cursor, cut = message["id"], cut - 1
                socket.transport.abort()
            await writer
        assert seen == list(range(1, total + 1))

    asyncio.run(run())


async def _write(gateway, *, total, bursts):
    """Append while clients come and go, in bursts with the loop free in between."""
    left = total
    for burst in [*bursts, *[1] * total]:
        count = min(burst, left)
        await gateway.append(count)
        left -= count
        await asyncio.sleep(0)


async def _until(is_true, *, append=None):
    async with asyncio.timeout(5):
        while not is_true():
            if append is not None:
                await append()
            await asyncio.sleep(0.01)
