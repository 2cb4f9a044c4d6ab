"""Labels of models, and how long their replicas take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamer.store.protocol import Presence, StageTime
from streamer.store.redis_records import dump_presence, load_presence

pytestmark = pytest.mark.unit

HEADS = {"classifier": {0: "opening a door", 1: "closing a door"}}
TIMES = {
    "encode": StageTime(batches=100, p50_ms=12.34567, p95_ms=20.0),
    "rollout": StageTime(batches=7, p50_ms=3.0, p95_ms=4.0),
}


async def test_labels_of_a_model_with_a_head(gateway, http):
    await gateway.announce(model=replace(gateway.info, name="org/ssv2", heads=HEADS))
    answer = (await http.get("/v1/models/org/ssv2/labels")).json()
    assert answer["heads"] == {"classifier": {"0": "opening a door", "1": "closing a door"}}
    assert (answer["model"], answer["fingerprint"]) == ("org/ssv2", gateway.info.fingerprint)
    (model,) = (await http.get("/v1/models")).json()["models"]
    assert model["heads"] == {"classifier": 2}


async def test_no_heads_no_labels(ready_http):
    answer = (await ready_http.get("/v1/models/tiny/labels")).json()
    assert answer["heads"] == {}
    assert "no label heads" in answer["detail"]


async def test_labels_of_a_model_that_is_not_served(ready_http):
    answer = await ready_http.get("/v1/models/other/labels")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "'other'" in answer.json()["detail"]


async def test_stage_times_of_every_replica(gateway, http):
    other = replace(gateway.info, name="other", fingerprint="feedfeedfeed")
    told = [
        Presence(kind="encoder", replica="e-1", model=gateway.info, stages=TIMES),
        Presence(kind="encoder", replica="e-0", model=gateway.info),
        Presence(kind="encoder", replica="e-2", model=other, stages=TIMES),
        Presence(kind="rollout", replica="r-0", model=gateway.info, stages=TIMES),
    ]
    for presence in told:
        await gateway.store.announce(presence, ttl_s=60)
    rows = (await http.get("/v1/models/tiny")).json()["stage_times"]
    assert [(row["replica"], row["stage"], row["batches"]) for row in rows] == [
        ("e-0", "encode", 0),
        ("e-1", "encode", 100),
        ("r-0", "rollout", 7),
    ]
    assert [row["p50_ms"] for row in rows] == [None, 12.346, 3.0]
    assert [row["p95_ms"] for row in rows] == [None, 20.0, 4.0]


def test_they_survive_redis(gateway):
    presence = Presence(
        kind="encoder", replica="e", model=replace(gateway.info, heads=HEADS), stages=TIMES
    )
    assert load_presence(dump_presence(presence)) == presence
    old = b'{"kind":"encoder","replica":"e","model":null}'  # as an older replica wrote it
    assert load_presence(old).stages == {}
