"""History by REST holds the same events as the feed."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from streamer.events.render import Renderer
from streamer.gateway.history import _find
from streamer.gateway.schema import HistoryQuery
from streamer.records import StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.unit

URL = "/v1/streams/cam/anticipations"


@pytest.fixture
async def mixed(gateway, http):
    """seq 1..40; every fourth is an anticipation: 4, 8, ..., 40."""
    await gateway.stream()
    for _ in range(10):
        await gateway.append(3)
        await gateway.append(kind="anticipation")
    return http


def _seqs(answer):
    return [event["seq"] for event in answer.json()["events"]]


@pytest.mark.parametrize(
    ("query", "seqs"),
    [
        ({}, list(range(4, 41, 4))),
        ({"limit": 3}, [32, 36, 40]),
        ({"before": "e1:32", "limit": 2}, [24, 28]),
        ({"before": "33", "limit": 2}, [28, 32]),
        ({"after": "0", "limit": 2}, [4, 8]),
        ({"after": "e1:8", "before": "20"}, [12, 16]),
        ({"after": "40"}, []),
        ({"before": "0"}, []),
        ({"before": "1"}, []),
    ],
)
async def test_ranges(mixed, query, seqs):
    assert _seqs(await mixed.get(URL, params=query)) == seqs


async def test_other_types_on_request(gateway, http):
    await gateway.stream()
    await gateway.append(kind="anticipation")
    await gateway.append(kind="surprise")
    await gateway.append(kind="stream.state")
    for types, seqs in [
        ("surprise", [2]),
        ("anticipation,surprise", [1, 2]),
        ("anticipation, stream.state", [1, 3]),
    ]:
        assert _seqs(await http.get(URL, params={"types": types})) == seqs
        assert _seqs(await http.get(URL, params={"types": types, "after": "0"})) == seqs
    assert _seqs(await http.get(URL)) == [1]
    assert (await http.get(URL, params={"types": "x" * 257})).status_code == 422


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ("heartbeat", "no event of type 'heartbeat'; there are anticipation, surprise, stream.st"),
        ("surprise,anticipations", "did you mean anticipation?"),
        ("", "types: there is no event of type ''"),
    ],
)
async def test_types_that_no_log_keeps_are_refused(gateway, http, types, words):
    await gateway.stream()
    answer = await http.get(URL, params={"types": types})
    assert answer.status_code == 422
    assert words in answer.json()["detail"]


async def test_walk_by_cursor_meets_every_event_once(mixed):
    seen, after = [], "0"
    for _ in range(6):
        body = (await mixed.get(URL, params={"after": after, "limit": 3})).json()
        seen += [event["id"] for event in body["events"]]
        after = body["next_after"]
    assert seen == [f"e1:{seq}" for seq in range(4, 41, 4)]
    assert after == "e1:40"


async def test_ndjson(mixed):
    answer = await mixed.get(URL, params={"limit": 2}, headers={"accept": "application/x-ndjson"})
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    events = [json.loads(line) for line in answer.text.splitlines()]
    assert [event["id"] for event in events] == ["e1:36", "e1:40"]


async def test_loss_is_told(make_gateway):
    gateway = make_gateway(store=MemoryStore(StoreConfig(max_events=10), epoch="e1"))
    await gateway.stream()
    await gateway.append(30, kind="anticipation")
    async with gateway.http() as http:
        kept = (await http.get(URL, params={"after": "5"})).json()
        lost = (await http.get(URL, params={"after": "e0:7"})).json()
        ahead = (await http.get(URL, params={"after": "99"})).json()
        gone = await http.get(URL, params={"before": "e0:7"})
    assert kept["gap"] == {"from_seq": 6, "to_seq": 20, "reason": "retention"}
    assert [event["seq"] for event in kept["events"]] == list(range(21, 31))
    assert lost["gap"] == ahead["gap"] == {"from_seq": 1, "to_seq": 20, "reason": "restart"}
    assert (gone.status_code, gone.json()["code"]) == (410, "resume_gone")


class TurningStore(MemoryStore):
    """Something happens to the log just before one of its reads."""

    def __init__(self, config=None, *, epoch="e1", before_read=None):
        super().__init__(config, epoch=epoch)
        self.reads = 0
        self.before_read = before_read or {}

    async def read(self, stream, *, after_seq, limit=256):
        self.reads += 1
        if self.reads in self.before_read:
            await self.before_read.pop(self.reads)()
        return await super().read(stream, after_seq=after_seq, limit=limit)


@pytest.mark.parametrize("query", [{"after": "0"}, {}])
@pytest.mark.parametrize("turn", [2, 3])
async def test_one_answer_is_of_one_epoch(make_gateway, query, turn):
    gateway = make_gateway(store=TurningStore())
    await gateway.stream()
    await gateway.append(600, kind="anticipation")

    async def lose():
        left = gateway.store.before_read
        TurningStore.__init__(gateway.store, epoch="e2", before_read=left)
        await gateway.stream()
        await gateway.append(300, kind="anticipation")

    gateway.store.reads, gateway.store.before_read = 0, {turn: lose}
    async with gateway.http() as http:
        body = (await http.get(URL, params=query | {"limit": 1000})).json()
    assert (body["epoch"], body["head_seq"], body["next_after"]) == ("e2", 300, "e2:300")
    assert [event["id"] for event in body["events"]] == [f"e2:{n}" for n in range(1, 301)]


async def test_a_cursor_of_a_log_lost_meanwhile_gets_its_gap(make_gateway):
    gateway = make_gateway(store=TurningStore())
    await gateway.stream()
    await gateway.append(600, kind="anticipation")

    async def lose():
        TurningStore.__init__(gateway.store, epoch="e2")
        await gateway.stream()
        await gateway.append(10, kind="anticipation")

    gateway.store.reads, gateway.store.before_read = 0, {2: lose}
    async with gateway.http() as http:
        body = (await http.get(URL, params={"after": "e1:5", "limit": 1000})).json()
    assert body["gap"] == {"from_seq": 1, "to_seq": 0, "reason": "restart"}
    assert [event["id"] for event in body["events"]] == [f"e2:{n}" for n in range(1, 11)]


class RestlessStore(MemoryStore):
    """Each read is of another epoch."""

    reads = 0

    async def read(self, stream, *, after_seq, limit=256):
        self.reads += 1
        log = await super().read(stream, after_seq=after_seq, limit=limit)
        return replace(log, epoch=f"e{self.reads}")


async def test_a_log_that_begins_anew_all_the_time_is_told(make_gateway):
    gateway = make_gateway(store=RestlessStore())
    await gateway.stream()
    await gateway.append(3, kind="anticipation")
    async with gateway.http() as http:
        answer = await http.get(URL, params={"after": "0"})
    assert (answer.status_code, answer.json()["code"]) == (503, "capacity")
    assert gateway.store.reads == 6


async def test_what_falls_out_while_it_is_read_is_told(make_gateway):
    gateway = make_gateway(store=TurningStore(StoreConfig(max_events=600)))
    await gateway.stream()
    await gateway.append(600, kind="anticipation")

    async def go_on():
        await gateway.append(100, kind="anticipation")

    async with gateway.http() as http:
        gateway.store.reads, gateway.store.before_read = 0, {2: go_on}
        front = (await http.get(URL, params={"after": "20", "limit": 300})).json()
        assert front["gap"] == {"from_seq": 21, "to_seq": 100, "reason": "retention"}
        assert _all(front) == list(range(101, 401))
        assert (front["first_seq"], front["head_seq"]) == (101, 700)

        async def go_far_on():
            await gateway.append(400, kind="anticipation")

        gateway.store.reads, gateway.store.before_read = 0, {3: go_far_on}
        middle = (await http.get(URL, params={"after": "100", "limit": 600})).json()
        assert middle["gap"] is None
        assert _all(middle) == list(range(101, 357))
        rest = (await http.get(URL, params={"after": middle["next_after"]})).json()
        assert rest["gap"] == {"from_seq": 357, "to_seq": 500, "reason": "retention"}


def _all(body):
    return [event["seq"] for event in body["events"]]


async def test_a_long_look_back_lets_others_run(gateway):
    await gateway.stream()
    await gateway.append(2000)
    turns = 0

    async def others():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    running = asyncio.ensure_future(others())
    found = await _find(
        gateway.store, "cam", HistoryQuery(types="surprise"), renderer=Renderer(capacity=1)
    )
    running.cancel()
    assert found.entries == []
    assert turns >= 2000 // 256


async def test_bad_questions(mixed):
    for query, status in (
        ({"after": "x:y:z"}, 400),
        ({"limit": 1001}, 400),
        ({"limit": 0}, 422),
        ({"since": "3"}, 422),
    ):
        assert (await mixed.get(URL, params=query)).status_code == status
    assert (await mixed.get("/v1/streams/none/anticipations")).status_code == 404


async def test_empty_log(http, gateway):
    await gateway.store.create_stream("cam", StreamSpec(source="synthetic:x"))
    body = (await http.get(URL)).json()
    assert (body["events"], body["next_after"], body["head_seq"]) == ([], "e1:0", 0)
