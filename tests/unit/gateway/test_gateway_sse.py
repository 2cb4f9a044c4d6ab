"""Server-Sent Events through a real server and a plain client on 127.0.0.1."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass

import httpx2
import pytest
from doubles import wait_until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamer.events.config import FeedConfig
from streamer.gateway.config import GatewayConfig

pytestmark = pytest.mark.unit

ACCEPT = {"Accept": "text/event-stream"}


@dataclass
class Event:
    type: str
    cursor: str
    data: dict


class Source:
    """What a browser's EventSource does: fields of blocks, and the last id it was given."""

    def __init__(self, answer):
        self._lines = answer.aiter_lines()
        self.retry = None
        self.last_id = None

    async def next(self):
        return await asyncio.wait_for(self._next(), 5)

    async def _next(self):
        fields = {}
        async for line in self._lines:
            if not line and "data" in fields:
                self.last_id = fields["id"]
                data = json.loads(fields["data"])
                assert data["type"] == fields["event"]
                return Event(fields["event"], fields["id"], data)
            name, _, value = line.partition(": ")
            assert name not in fields
            if name == "retry":
                self.retry = int(value)
            else:
                fields[name] = value
        return None

    async def types(self, count):
        return [(await self.next()).type for _ in range(count)]


@contextlib.asynccontextmanager
async def opened(host, query="", *, last_id=None, stream="cam", **headers):
    headers = ACCEPT | ({} if last_id is None else {"Last-Event-ID": last_id}) | headers
    url = f"http://{host}/v1/streams/{stream}/feed{query}"
    async with (
        httpx2.AsyncClient(trust_env=False) as client,
        client.stream("GET", url, headers=headers, timeout=5) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert answer.headers["Cache-Control"] == "no-store"
        yield Source(answer)


async def test_history_then_live(gateway):
    await gateway.stream()
    await gateway.append(3)
    async with gateway.served() as host, opened(host, "?after=1") as source:
        created = await source.next()
        assert (created.type, created.cursor, source.retry) == ("session.created", "e1:1", 1000)
        events = [await source.next() for _ in range(2)]
        assert [event.cursor for event in events] == ["e1:2", "e1:3"]
        assert [event.data["id"] for event in events] == ["e1:2", "e1:3"]
        await gateway.append(reason="line\u2028break\nend")
        event = await source.next()
        assert (event.cursor, event.data["reason"]) == ("e1:4", "line\u2028break\nend")


async def test_it_resumes_though_nothing_happened_yet(gateway):
    """The very first message has a cursor: a client cut off before any event misses none."""
    await gateway.stream()
    await gateway.append(2)
    async with gateway.served() as host:
        async with opened(host) as source:
            await source.next()
        assert source.last_id == "e1:2"
        await gateway.append(2)
        async with opened(host, "?after=0", last_id=source.last_id) as source:
            await source.next()
            assert [(await source.next()).cursor for _ in range(2)] == ["e1:3", "e1:4"]


async def test_options_in_the_query(make_gateway):
    gateway = make_gateway(feed=FeedConfig(heartbeat_s=0.05))
    await gateway.stream()
    await gateway.append(2)
    await gateway.append(kind="anticipation")
    await gateway.append(2)
    query = "?after=0&types=anticipation,surprise&top_k=3&horizons_s=0.5,1"
    async with gateway.served() as host, opened(host, query) as source:
        options = (await source.next()).data["options"]
        assert options["types"] == ["anticipation", "surprise"]
        assert (options["top_k"], options["horizons_s"]) == (3, [0.5, 1.0])
        assert (await source.next()).cursor == "e1:3"
        beat = await source.next()  # the filtered ones are behind it, and need not come again
        assert (beat.type, beat.cursor) == ("heartbeat", "e1:5")


@pytest.mark.parametrize(
    ("query", "headers", "status", "code"),
    [
        ("", {"Accept": "*/*"}, 426, "upgrade_required"),
        ("?afer=1", {}, 400, "protocol_violation"),
        ("?after=x:y:z", {}, 400, "protocol_violation"),
        ("", {"Last-Event-ID": "x:y:z"}, 400, "protocol_violation"),
        ("?top_k=0", {}, 400, "protocol_violation"),
        ("?horizons_s=a", {}, 400, "protocol_violation"),
        ("?horizons_s=2.1", {}, 400, "protocol_violation"),
        ("?types=anticipations", {}, 400, "protocol_violation"),
        ("?stream=hall", {}, 400, "protocol_violation"),
        ("?after=77&strict=true", {}, 410, "resume_gone"),
    ],
)
async def test_refusals_are_problems(gateway, query, headers, status, code):
    await gateway.stream()
    async with gateway.http() as http:
        answer = await http.get(f"/v1/streams/cam/feed{query}", headers=ACCEPT | headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert gateway.app.state.hub.subscribers == 0


async def test_no_stream_no_room_no_service(make_gateway):
    gateway = make_gateway(config=GatewayConfig(max_subscribers=1))
    await gateway.stream()
    async with gateway.served() as host, gateway.http() as http:

        async def status(stream):
            answer = await http.get(f"/v1/streams/{stream}/feed", headers=ACCEPT)
            return answer.status_code, answer.headers.get("Retry-After")

        assert await status("none") == (404, None)
        async with opened(host) as source:
            await source.next()
            assert await status("cam") == (503, "5")
        gateway.backend.draining.set()
        assert await status("cam") == (503, "1")


async def test_drain_ends_the_body(gateway):
    await gateway.stream()
    await gateway.append()
    async with gateway.served() as host, opened(host, "?after=0") as source:
        assert await source.types(2) == ["session.created", "stream.state"]
        gateway.backend.draining.set()
        closing = await source.next()
        assert (closing.type, closing.cursor) == ("session.closing", "e1:1")
        assert await source.next() is None


async def test_age_ends_the_body(make_gateway):
    gateway = make_gateway(feed=FeedConfig(max_life_s=0.1))
    await gateway.stream()
    async with gateway.served() as host, opened(host) as source:
        assert await source.types(2) == ["session.created", "session.closing"]
        assert await source.next() is None


async def test_client_that_leaves_is_noticed(gateway):
    await gateway.stream()
    async with gateway.served() as host:
        async with opened(host) as source:
            await source.next()
            assert gateway.app.state.hub.subscribers == 1
        await wait_until(lambda: gateway.app.state.hub.subscribers == 0)


async def test_slow_client_is_dropped(make_gateway):
    """It never reads: its connection fills, then its outbox, then it goes."""
    gateway = make_gateway(feed=FeedConfig(outbox=8, slow_grace_s=0.2))
    await gateway.stream()
    async with gateway.served() as host:
        reader, writer = await asyncio.open_connection(*host.split(":"), limit=1024)
        writer.write(f"GET /v1/streams/cam/feed HTTP/1.1\r\nHost: {host}\r\n".encode())
        writer.write(b"Accept: text/event-stream\r\n\r\n")
        await reader.readuntil(b"session.created")
        async with asyncio.timeout(10):
            while gateway.app.state.hub.subscribers:
                await gateway.append(reason="x" * 60_000)
                await asyncio.sleep(0.005)
        writer.transport.abort()


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    cuts=st.lists(st.integers(0, 30), max_size=6), bursts=st.lists(st.integers(1, 9), max_size=9)
)
def test_cut_anywhere_and_resumed_the_sequence_is_whole(make_gateway, cuts, bursts):
    """An EventSource that is cut after any message and comes back with the last id it was given."""

    async def run():
        gateway = make_gateway(feed=FeedConfig(outbox=16, read_limit=4))
        await gateway.stream()
        total, seen, last_id = 60, [], "0"
        async with gateway.served() as host, asyncio.TaskGroup() as group:
            group.create_task(_write(gateway, total=total, bursts=bursts))
            for cut in [*cuts, total]:
                async with opened(host, "?strict=true", last_id=last_id) as source:
                    await source.next()
                    for _ in range(min(cut, total - len(seen))):
                        seen.append((await source.next()).data["seq"])
                    last_id = source.last_id
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


async def test_an_unknown_option_of_a_feed_is_told_the_nearest(gateway):
    await gateway.stream()
    async with gateway.http() as http:
        answer = await http.get("/v1/streams/cam/feed?horizon=1", headers=ACCEPT)
        other = await http.get("/v1/streams/cam/feed?types=anticipations", headers=ACCEPT)
    assert "no 'horizon'; did you mean horizons_s? It takes after," in answer.json()["detail"]
    assert other.json()["detail"].endswith("'anticipations'; did you mean anticipation?")
