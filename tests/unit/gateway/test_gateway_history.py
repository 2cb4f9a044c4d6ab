"""History by REST holds the same events as the feed."""

from __future__ import annotations

import json

import pytest

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
        ("of.tomorrow", []),
    ]:
        assert _seqs(await http.get(URL, params={"types": types})) == seqs
        assert _seqs(await http.get(URL, params={"types": types, "after": "0"})) == seqs
    assert _seqs(await http.get(URL)) == [1]
    assert (await http.get(URL, params={"types": "x" * 257})).status_code == 422


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
