"""Several streams on one socket, and what a client can ask of a running feed."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
import websockets
from websockets.asyncio.client import connect

from streamer.events.config import FeedConfig
from streamer.gateway.config import GatewayConfig
from streamer.gateway.tokens import new_token

pytestmark = pytest.mark.unit


class Socket:
    def __init__(self, raw):
        self._raw = raw

    async def next(self, kind=None):
        """The next message, or the next of a kind."""
        async with asyncio.timeout(5):
            while True:
                message = json.loads(await self._raw.recv())
                if kind in (None, message["type"]):
                    return message

    async def say(self, **message):
        await self._raw.send(json.dumps(message))

    async def places(self, count):
        """(stream, seq) of the next events, whatever comes between."""
        found = []
        while len(found) < count:
            message = await self.next()
            if "seq" in message:
                found.append((message["stream"], message["seq"]))
        return found

    async def close_code(self):
        with pytest.raises(websockets.ConnectionClosed) as caught:
            while True:
                await self.next()
        return caught.value.rcvd.code


@contextlib.asynccontextmanager
async def opened(host, query, *, path="/v1/feed", headers=None):
    url = f"ws://{host}{path}?{query}"
    async with connect(url, proxy=None, additional_headers=headers) as raw:
        yield Socket(raw)


async def _two(gateway):
    for stream in ("a", "b"):
        await gateway.stream(stream)
        await gateway.append(2, stream=stream)


async def test_each_stream_has_its_cursor(gateway):
    await _two(gateway)
    async with (
        gateway.served() as host,
        opened(host, "stream=a&stream=b&after=a:e1:1&after=b:0") as socket,
    ):
        created = await socket.next()
        assert [head["stream"] for head in created["streams"]] == ["a", "b"]
        found = await socket.places(3)
        assert sorted(found) == [("a", 2), ("b", 1), ("b", 2)]
        await gateway.append(stream="a")
        assert await socket.places(1) == [("a", 3)]
        await socket.say(type="feed.resume", id="r", after={"a": "e1:2"})
        assert (await socket.next())["in_reply_to"] == "r"
        assert await socket.places(1) == [("a", 3)]
        gateway.backend.draining.set()
        closing = await socket.next("session.closing")
        assert closing["resume_after"] == {"a": "e1:3", "b": "e1:2"}
        assert await socket.close_code() == 1012


async def test_streams_come_and_go(gateway):
    await _two(gateway)
    async with gateway.served() as host, opened(host, "stream=a") as socket:
        await socket.next()
        await socket.say(type="session.update", id="u", streams=["b", "none"])
        refused = await socket.next()
        assert (refused["code"], refused["in_reply_to"]) == ("not_found", "u")
        await gateway.append(stream="a")
        assert await socket.places(1) == [("a", 3)]  # as before
        await socket.say(type="session.update", id="v", streams=["b"])
        updated = await socket.next()
        assert (updated["in_reply_to"], updated["streams"]) == ("v", ["b"])
        await gateway.append(stream="a")
        await gateway.append(stream="b")
        assert await socket.places(1) == [("b", 3)]
        assert set(gateway.app.state.hub._shared) == {"b"}
        await socket.say(type="session.update", streams=["b", "a"])
        assert (await socket.next())["streams"] == ["b", "a"]
        await gateway.append(stream="a")
        assert await socket.places(1) == [("a", 5)]


class _Forgetful:
    """A store that forgets one stream's log."""

    def __init__(self, store):
        self._store = store
        self.forgotten = set()

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def read(self, stream, *, after_seq, limit=256):
        name = "nowhere" if stream in self.forgotten else stream
        return await self._store.read(name, after_seq=after_seq, limit=limit)


async def test_a_forgotten_stream_does_not_end_the_others(make_gateway):
    store = _Forgetful(make_gateway().store)
    gateway = make_gateway(store=store)
    await _two(gateway)
    async with gateway.served() as host, opened(host, "stream=a&stream=b") as socket:
        await socket.next()
        store.forgotten.add("a")
        await gateway.append(stream="a")
        assert (await socket.next())["code"] == "not_found"
        await gateway.append(stream="b")
        assert await socket.places(1) == [("b", 3)]
    store.forgotten.clear()
    async with (
        gateway.served() as host,
        opened(host, "", path="/v1/streams/a/feed") as socket,
    ):
        await socket.next()
        store.forgotten.add("a")
        await gateway.append(stream="a")
        assert await socket.close_code() == 4404


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", 4400),
        ("stream=a&stream=none", 4404),
        ("stream=a&after=e1:3", 4400),
        ("stream=a&after=b:3", 4400),
        ("stream=a&after=3", 4400),
        ("stream=a&tokn=3", 4400),
        ("&".join(f"stream=s{n}" for n in range(5)), 4400),
    ],
)
async def test_close_codes(make_gateway, query, code):
    gateway = make_gateway(feed=FeedConfig(max_streams=4))
    await _two(gateway)
    async with gateway.served() as host, opened(host, query) as socket:
        assert await socket.close_code() == code


async def test_one_stream_stays_one_stream(gateway):
    await _two(gateway)
    async with gateway.served() as host, opened(host, "", path="/v1/streams/a/feed") as socket:
        await socket.next()
        await socket.say(type="session.update", streams=["b"])
        assert "/v1/feed" in (await socket.next("error"))["message"]


async def test_a_paused_feed_misses_nothing(make_gateway):
    gateway = make_gateway(feed=FeedConfig(outbox=4, read_limit=3, heartbeat_s=0.05))
    await _two(gateway)
    async with gateway.served() as host, opened(host, "stream=a&after=a:0") as socket:
        await socket.places(2)
        await socket.say(type="feed.pause", id="p")
        assert (await socket.next("session.updated"))["paused"]
        await gateway.append(20, stream="a")
        assert [(await socket.next())["type"] for _ in range(2)] == ["heartbeat"] * 2
        await socket.say(type="feed.continue", id="c")
        updated = await socket.next("session.updated")
        assert (updated["in_reply_to"], updated["paused"]) == ("c", False)
        assert await socket.places(20) == [("a", seq) for seq in range(3, 23)]


async def test_stats_when_asked_for(gateway):
    await _two(gateway)
    await gateway.report({"state": "live", "fps_in": 15.0, "dropped": 3}, stream="a")
    async with gateway.served() as host, opened(host, "stream=a&stats=true") as socket:
        stats = await socket.next("stats")
        assert (stats["stream"], stats["state"], stats["head_seq"]) == ("a", "live", 2)
        assert (stats["fps_in"], stats["fps_used"], stats["dropped"]) == (15.0, None, 3)
        assert stats["latency_ms"] == {}
        await socket.say(type="session.update", stats=None)
        await socket.next("session.updated")
        await gateway.append(stream="a")
        assert (await socket.next())["type"] == "stream.state"


async def test_age_closes_with_a_resume_point(make_gateway):
    gateway = make_gateway(feed=FeedConfig(max_life_s=0.1))
    await _two(gateway)
    async with gateway.served() as host, opened(host, "stream=a") as socket:
        assert (await socket.next())["limits"]["max_life_s"] == 0.1
        assert (await socket.next())["resume_after"] == {"a": "e1:2"}
        assert await socket.close_code() == 1012


async def test_a_token_taken_back_ends_its_feeds(make_gateway, tmp_path):
    path = tmp_path / "tokens.json"

    def write(*tokens):
        path.write_text(json.dumps([token.model_dump(mode="json") for token in tokens]))

    (secret, token), (_, other) = new_token("a", ["read"]), new_token("b", ["read"])
    write(token, other)
    gateway = make_gateway(config=GatewayConfig(tokens_file=str(path)))
    await _two(gateway)
    headers = {"Authorization": f"Bearer {secret}"}
    async with gateway.served() as host, opened(host, "stream=a", headers=headers) as socket:
        await socket.next()
        write(other)
        assert await socket.close_code() == 4401


async def test_a_ticket_for_one_stream_opens_no_other(make_gateway, tmp_path):
    secret, token = new_token("a", ["read"])
    (tmp_path / "t").write_text(json.dumps([token.model_dump(mode="json")]))
    gateway = make_gateway(config=GatewayConfig(tokens_file=str(tmp_path / "t")))
    await _two(gateway)
    async with gateway.served() as host, gateway.http() as http:
        headers = {"Authorization": f"Bearer {secret}"}
        made = await http.post("/v1/tickets", json={"streams": ["a"]}, headers=headers)
        ticket = f"ticket={made.json()['ticket']}"
        async with opened(host, f"stream=a&stream=b&{ticket}") as socket:
            assert await socket.close_code() == 4403
        async with opened(host, f"stream=a&{ticket}") as socket:
            await socket.next()
            await socket.say(type="session.update", streams=["a", "b"])
            assert (await socket.next())["code"] == "forbidden"
            await socket.say(type="session.update", streams=["a"])
            assert (await socket.next())["streams"] == ["a"]


async def test_a_horizon_that_no_stream_foretells_is_told(gateway):
    """Streams look 2 s ahead here."""
    await _two(gateway)
    async with gateway.served() as host:
        async with opened(host, "stream=a&stream=b&horizons_s=2.5") as socket:
            assert await socket.close_code() == 4400
        async with opened(host, "stream=a&stream=b&horizons_s=1.2") as socket:
            await socket.next("session.created")
            await socket.say(type="session.update", id="u", horizons_s=[0.5, 9])
            told = [await socket.next() for _ in range(2)]
    by_type = {message["type"]: message for message in told}
    assert by_type["session.updated"]["options"]["horizons_s"] == [0.5, 9.0]
    assert "looks 9 s ahead (a: 0.5, 1, 2; b: 0.5, 1, 2)" in by_type["error"]["message"]
