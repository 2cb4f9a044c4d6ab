"""Feeds as they were recorded from real services stay valid: for the schema, for us, in order.

A recording that fails here is a client that breaks. Make new ones by tests/record_feed.py; old ones
are never changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from streamer.clock import parse_utc
from streamer.events.schema import server_message

pytestmark = pytest.mark.contract

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.ndjson"))
SCHEMA = Path(__file__).parents[3] / "docs" / "schema" / "streamer.v1.json"
KINDS = {
    "anticipation",
    "error",
    "gap",
    "heartbeat",
    "latent.picture",
    "session.closing",
    "session.created",
    "session.updated",
    "stats",
    "stream.state",
    "surprise",
}

Message = dict[str, Any]


def messages(recording: Path) -> list[Message]:
    return [json.loads(line) for line in recording.read_text().splitlines()]


def retained(recorded: list[Message]) -> list[Message]:
    return [message for message in recorded if "seq" in message]


@pytest.fixture(params=RECORDINGS, ids=lambda path: path.stem)
def recorded(request: pytest.FixtureRequest) -> list[Message]:
    return messages(request.param)


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))


def test_every_kind_of_message_was_recorded() -> None:
    assert {m["type"] for path in RECORDINGS for m in messages(path)} >= KINDS


def test_recordings_are_small() -> None:
    assert sum(path.stat().st_size for path in RECORDINGS) < 400_000


def test_each_message_is_valid_and_comes_back_as_it_was(
    recorded: list[Message], validator: jsonschema.Draft202012Validator
) -> None:
    for message in recorded:
        validator.validate(message)
        parsed = server_message.validate_json(json.dumps(message))
        shown = json.loads(parsed.model_dump_json())
        assert is_within(message, shown)


def is_within(old: Any, new: Any) -> bool:
    """Everything that was recorded is there, whatever came to it since."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(
            name in new and is_within(value, new[name]) for name, value in old.items()
        )
    if isinstance(old, list):
        return len(old) == len(new) and all(map(is_within, old, new))
    return bool(old == new)


def test_a_feed_begins_and_ends_as_promised(recorded: list[Message]) -> None:
    assert [m["type"] == "session.created" for m in recorded] == [True] + [False] * (
        len(recorded) - 1
    )
    closings = [n for n, m in enumerate(recorded) if m["type"] == "session.closing"]
    assert closings in ([], [len(recorded) - 1])


def runs(recorded: list[Message]) -> Iterator[tuple[int, Message]]:
    """Each retained message with the seq that had to come."""
    due = 1
    for message in recorded:
        if message["type"] == "gap":
            due = message["to_seq"] + 1
        elif "seq" in message:
            yield due, message
            due += 1


def test_numbers_have_no_hole_and_ids_are_cursors(recorded: list[Message]) -> None:
    (head,) = recorded[0]["streams"]
    assert retained(recorded)
    for due, message in runs(recorded):
        assert message["seq"] == due
        assert message["id"] == f"{head['epoch']}:{due}"
        assert message["stream"] == head["stream"]


def test_ids_of_the_others_are_unique(recorded: list[Message]) -> None:
    ids = [m["id"] for m in recorded if "seq" not in m]
    assert len(ids) == len(set(ids))
    assert all(len(each) == 26 for each in ids)


def test_events_refer_to_what_came_before(recorded: list[Message]) -> None:
    anticipations: dict[int, Message] = {}
    newest = 0
    for message in recorded:
        newest = max(newest, message.get("seq", 0))
        match message["type"]:
            case "anticipation":
                if message["surprise"] is not None:
                    assert message["surprise"]["predicted_by"] < message["seq"]
                anticipations[message["seq"]] = message
            case "surprise" | "latent.picture":
                assert message["anticipation"] in anticipations
            case "heartbeat" | "stats":
                assert message["head_seq"] >= max(
                    (m["seq"] for m in retained(recorded[:1])), default=0
                )


def test_times_of_events_rise_and_a_window_ends_with_its_capture(recorded: list[Message]) -> None:
    times = [parse_utc(m["time"]) for m in retained(recorded)]
    assert times == sorted(times)
    for message in recorded:
        if message["type"] == "anticipation":
            assert message["window"]["end"] == message["capture_time"]
            steps = [future["horizon_s"] for future in message["futures"]]
            assert steps == sorted(steps)
            parts = dict(message["latency_ms"])
            assert sum(v for k, v in parts.items() if k != "total") == pytest.approx(
                parts["total"], abs=0.01
            )
