"""The wire schema: its published snapshot, the documented example, what is open and what closed."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from streamer.events.json_schema import schema_text, wire_schema
from streamer.events.render import render
from streamer.events.schema import (
    Anticipation,
    AnticipationBody,
    FeedOptions,
    StreamState,
    StreamStateBody,
    SurpriseEpisode,
    SurpriseEpisodeBody,
    client_message,
    retained_body,
    server_message,
)

pytestmark = pytest.mark.contract

SNAPSHOT = Path(__file__).parents[3] / "docs" / "schema" / "streamer.v1.json"
EXAMPLE = """
{"type":"anticipation","id":"7f3a:418","stream":"kitchen","seq":418,
 "time":"2026-12-01T09:00:03.412345Z",
 "capture_time":"2026-12-01T09:00:03.300000Z","capture_clock":"media",
 "model":{"name":"vjepa2-vitl-256","fingerprint":"3fa9c1","trained":true},
 "window":{"start":"2026-12-01T08:59:47.550Z","end":"2026-12-01T09:00:03.300Z","frames":64,
           "fps":4.0,"first_frame":8774,"last_frame":9246,"dropped":0},
 "present":{"action":[{"id":17,"label":"hold knife","score":0.61}]},
 "futures":[{"horizon_s":0.5,"start":"2026-12-01T09:00:03.550Z","end":"2026-12-01T09:00:03.800Z",
             "heads":{"action":[{"id":42,"label":"cut onion","score":0.48},
                                {"id":17,"label":"hold knife","score":0.22}]},
             "drift":0.08}],
 "surprise":{"value":0.113,"z":0.4,"baseline":0.108,"horizon_s":0.5,"predicted_by":417},
 "latency_ms":{"decode":4,"assemble":1,"queue":3,"encode":52,"rollout":24,"probe":3,"transfer":25,
               "total":112}}
"""
STATE = {
    "type": "stream.state",
    "id": "7f3a:1",
    "seq": 1,
    "stream": "kitchen",
    "time": "2026-12-01T09:00:03.412345Z",
    "state": "live",
}
SURPRISE = {
    "type": "surprise",
    "id": "7f3a:427",
    "seq": 427,
    "stream": "kitchen",
    "time": "2026-12-01T09:00:12.412345Z",
    "phase": "end",
    "episode": "01KBCD0000000000000000000A",
    "reason": "calm",
    "window": {"start": "2026-12-01T08:59:56.550000Z", "end": "2026-12-01T09:00:12.300000Z"},
    "start": "2026-12-01T09:00:03.300000Z",
    "end": "2026-12-01T09:00:12.300000Z",
    "duration_s": 9.0,
    "peak": {
        "value": 0.31,
        "z": 9.4,
        "seq": 421,
        "capture_time": "2026-12-01T09:00:05.300000Z",
        "horizon_s": 0.5,
        "predicted_by": 420,
    },
    "value": 0.12,
    "z": 0.6,
    "baseline": 0.108,
    "threshold": 6.0,
    "anticipation": 426,
    "model": {"name": "vjepa2-vitl-256", "fingerprint": "3fa9c1", "trained": True},
}
TRANSIENT = {"id": "01KBCD0000000000000000000A", "time": "2026-12-01T09:00:03.412345Z"}
TRANSIENTS = [
    {
        "type": "session.created",
        "session": "01KBCD0000000000000000000B",
        "protocol": "streamer.v1",
        "streams": [{"stream": "kitchen", "epoch": "7f3a", "head_seq": 418, "first_seq": 1}],
        "options": {"top_k": 3},
        "limits": {"outbox": 256},
    },
    {"type": "session.updated", "options": {}, "in_reply_to": "m1"},
    {
        "type": "gap",
        "stream": "kitchen",
        "from_seq": 1,
        "to_seq": 0,
        "reason": "restart",
    },
    {"type": "heartbeat", "stream": "kitchen", "head_seq": 418},
    {
        "type": "session.closing",
        "reason": "update",
        "retry_after_s": 1.0,
        "resume_after": {"kitchen": "7f3a:418"},
    },
    {"type": "error", "code": "protocol_violation", "message": "No.", "retryable": False},
]
MESSAGES = [json.loads(EXAMPLE), STATE, SURPRISE, *(each | TRANSIENT for each in TRANSIENTS)]


@pytest.fixture(scope="module")
def validator():
    schema = wire_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_snapshot_is_current():
    assert SNAPSHOT.read_text() == schema_text(), (
        "The wire schema changed. Fields are never renamed or removed; if this change only adds, "
        "run: python -m streamer.events.json_schema > docs/schema/streamer.v1.json"
    )


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["type"])
def test_each_message_validates_in_both_schemas(validator, message):
    validator.validate(message)
    parsed = server_message.validate_python(message)
    assert parsed.type == message["type"]
    validator.validate(json.loads(parsed.model_dump_json()))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["type"])
def test_published_schema_is_open_where_clients_must_be(validator, message):
    validator.validate(message | {"a_later_field": {"x": 1}})
    with pytest.raises(ValueError, match="a_later_field"):
        server_message.validate_python(message | {"a_later_field": 1})


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["type"])
@pytest.mark.parametrize("field", ["type", "id", "time"])
def test_published_schema_requires_the_envelope(validator, message, field):
    without = {name: value for name, value in message.items() if name != field}
    assert not validator.is_valid(without)


def test_example_round_trips_through_the_log():
    example = Anticipation.model_validate_json(EXAMPLE)
    body = AnticipationBody(**example.model_dump(exclude={"id", "seq"}))
    assert retained_body(body) == retained_body(example)
    assert "id" not in json.loads(retained_body(body))
    assert server_message.validate_json(render(retained_body(body), "7f3a", 418)) == example


def test_state_round_trips_through_the_log():
    body = StreamStateBody(stream="kitchen", time=STATE["time"], state="live")
    assert server_message.validate_json(render(retained_body(body), "7f3a", 1)) == StreamState(
        **STATE
    )


def test_surprise_round_trips_through_the_log():
    body = SurpriseEpisodeBody(
        **{name: value for name, value in SURPRISE.items() if name not in ("id", "seq")}
    )
    event = server_message.validate_json(render(retained_body(body), "7f3a", 427))
    assert event == SurpriseEpisode(**SURPRISE)


@pytest.mark.parametrize("wrong", [{"phase": "over"}, {"reason": "bored"}, {"z": float("inf")}])
def test_an_episode_has_known_phases_reasons_and_numbers(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SurpriseEpisode(**SURPRISE | wrong)


def test_makers_cannot_publish_numbers_that_are_none():
    example = json.loads(EXAMPLE)
    example["futures"][0]["drift"] = float("nan")
    with pytest.raises(ValueError, match="finite"):
        Anticipation.model_validate(example)


def test_client_messages_are_closed():
    schema = wire_schema()
    client = jsonschema.Draft202012Validator(schema | {"$ref": "#/$defs/ClientMessage"})
    update = {"type": "session.update", "id": "m1", "types": ["anticipation"], "top_k": None}
    resume = {"type": "feed.resume", "after": {"kitchen": "7f3a:418", "yard": 3}, "strict": True}
    for message in (update, resume):
        client.validate(message)
        client_message.validate_python(message)
        assert not client.is_valid(message | {"typo": 1})
        with pytest.raises(ValueError, match="typo"):
            client_message.validate_python(message | {"typo": 1})


@pytest.mark.parametrize(
    "wrong",
    [
        {"top_k": 0},
        {"min_score": 1.5},
        {"min_score": float("nan")},
        {"types": [""]},
        {"heads": ["x"] * 65},
        {"horizons_s": [float("inf")]},
    ],
    ids=str,
)
def test_options_are_bounded(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        FeedOptions(**wrong)
