"""Cursors, ULIDs, rendering, config, client messages."""

from __future__ import annotations

import json
import random
import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from streamer.errors import ConfigError, ProtocolViolation
from streamer.events.compose import Close
from streamer.events.config import FeedConfig
from streamer.events.cursor import Cursor, format_cursor, parse_cursor
from streamer.events.inbox import Refusal, parse_client_message
from streamer.events.kinds import RETAINED_TYPES, SERVER_TYPES
from streamer.events.render import Renderer, event_type, render
from streamer.events.schema import FeedOptions, ServerMessage, SessionUpdate
from streamer.events.ulid import Ulids

pytestmark = pytest.mark.unit


# cursors ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "cursor"),
    [
        ("7f3a:418", Cursor("7f3a", 418)),
        ("7f3a:0", Cursor("7f3a", 0)),
        ("418", Cursor(None, 418)),
        (418, Cursor(None, 418)),
        (0, Cursor(None, 0)),
    ],
)
def test_cursor_forms(text, cursor):
    assert parse_cursor(text) == cursor
    assert str(cursor) == str(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "a:", ":3", "a:b:3", "-1", "1.0", " 1", "1\n", "٣", "a b:1"),
        *("a" * 40 + ":1", "9" * 400, -1, 10**16, True),
    ],
)
def test_rubbish_is_no_cursor(text):
    with pytest.raises(ProtocolViolation, match="cursor") as caught:
        parse_cursor(text)
    assert len(caught.value.message) < 200


@given(st.from_regex(r"[0-9a-f]{4,8}", fullmatch=True), st.integers(0, 10**15 - 1))
def test_cursor_round_trip(epoch, seq):
    assert parse_cursor(format_cursor(epoch, seq)) == Cursor(epoch, seq)


# ulids ------------------------------------------------------------------------------------------
def test_ulid_spells_its_time():
    ulids = Ulids(wall=lambda: 1_469_918_176_385 * 1_000_000, rng=random.Random(1))
    first = ulids.next()
    assert len(first) == 26
    assert first.startswith("01ARYZ6S41")
    assert not set(first) & set("ILOU")


def test_ulids_rise_within_one_millisecond_and_when_the_clock_steps_back():
    walls = iter([5_000_000, 5_000_000, 5_100_000, 4_000_000, 9_000_000])
    ulids = Ulids(wall=lambda: next(walls), rng=random.Random(1))
    made = [ulids.next() for _ in range(5)]
    assert made == sorted(made)
    assert len(set(made)) == 5


# rendering --------------------------------------------------------------------------------------
def anticipation(**fields):
    labels = [
        {"id": 1, "label": "cut", "score": 0.6},
        {"id": 2, "label": "höld", "score": 0.3},
        {"id": 3, "label": "rest", "score": 0.1},
    ]
    heads = {"action": labels, "verb": labels[:2]}
    futures = [{"horizon_s": h, "heads": heads, "drift": 0.1} for h in (0.5, 1.0, 2.0)]
    event = {"type": "anticipation", "stream": "k", "present": heads, "futures": futures}
    return json.dumps(event | fields).encode()


def test_render_splices_without_parsing():
    assert render(b'{"a":1}', "7f3a", 9) == b'{"id":"7f3a:9","seq":9,"a":1}'
    assert render(b"{}", "7f3a", 9) == b'{"id":"7f3a:9","seq":9}'
    assert render(b"{ }", "7f3a", 9) == b'{"id":"7f3a:9","seq":9 }'
    assert render(b"{not json}", "7f3a", 9) == b'{"id":"7f3a:9","seq":9,not json}'


def test_no_options_is_the_plain_splice():
    body = anticipation()
    assert Renderer().render(body, "e", 1, options=FeedOptions()) == render(body, "e", 1)
    only_types = FeedOptions(types=["anticipation"])
    assert Renderer().render(body, "e", 1, options=only_types) == render(body, "e", 1)


def thin(**options):
    data = Renderer().render(anticipation(), "e", 1, options=FeedOptions(**options))
    event = json.loads(data)
    assert (event["id"], event["seq"], event["stream"]) == ("e:1", 1, "k")
    return event


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [([0.5004, 2.0], [0.5, 2.0]), ([0.7], [1.0]), ([0.1, 0.2], [0.5]), ([2.1], []), ([1.0], [1.0])],
)
def test_horizons_are_rounded_up_to_those_of_the_stream(wanted, kept):
    event = thin(horizons_s=wanted)
    assert [future["horizon_s"] for future in event["futures"]] == kept
    assert list(event["present"]) == ["action", "verb"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("anticipations", "there is no type 'anticipations'; did you mean anticipation?"),
        ("bogus", "there is no type 'bogus'"),
    ],
)
def test_a_type_that_never_comes_is_refused(name, words):
    with pytest.raises(ValidationError, match=re.escape(words)):
        FeedOptions(types=[name])


def test_every_type_of_message_is_known():
    messages = get_args(get_args(ServerMessage)[0])
    assert {each.model_fields["type"].default for each in messages} == set(SERVER_TYPES)
    kept = {each.model_fields["type"].default for each in messages if "seq" in each.model_fields}
    assert kept == set(RETAINED_TYPES)
    assert FeedOptions(types=SERVER_TYPES).types == SERVER_TYPES


def test_heads_top_k_and_min_score_thin_present_and_futures():
    event = thin(heads=["action"], top_k=2, min_score=0.2)
    for heads in (event["present"], *(future["heads"] for future in event["futures"])):
        assert list(heads) == ["action"]
        assert [label["label"] for label in heads["action"]] == ["cut", "höld"]
    assert thin(min_score=0.9)["present"] == {"action": [], "verb": []}
    assert [future["drift"] for future in thin(top_k=1)["futures"]] == [0.1] * 3


def test_other_events_are_never_thinned():
    body = b'{"type":"stream.state","futures":1,"present":2}'
    options = FeedOptions(top_k=1, horizons_s=[1.0])
    assert Renderer().render(body, "e", 1, options=options) == render(body, "e", 1)


def test_fields_of_later_versions_survive_thinning():
    event = json.loads(
        Renderer().render(anticipation(new=[1]), "e", 1, options=FeedOptions(top_k=1))
    )
    assert event["new"] == [1]


def test_types_choose():
    renderer = Renderer()
    assert renderer.is_wanted(anticipation(), FeedOptions())
    assert renderer.is_wanted(anticipation(), FeedOptions(types=["anticipation"]))
    assert not renderer.is_wanted(anticipation(), FeedOptions(types=["stream.state"]))
    assert not renderer.is_wanted(anticipation(), FeedOptions(types=[]))
    assert event_type(b"{}") == event_type(b'{"type":3}') == ""


def test_each_variant_is_made_once_and_the_cache_is_bounded():
    renderer = Renderer(capacity=2)
    body = anticipation()
    for top_k in (1, 1, 2, 3):
        renderer.render(body, "e", 1, options=FeedOptions(top_k=top_k))
    renderer.render(body, "e", 1, options=FeedOptions(top_k=3, types=["anticipation"]))
    facts = renderer._thin.cache_info()
    assert (facts.hits, facts.misses, facts.currsize) == (2, 3, 2)


# config, closing --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "wrong",
    [{"outbox": 0}, {"heartbeat_s": 0}, {"slow_grace_s": float("nan")}, {"max_message_bytes": 10}],
    ids=str,
)
def test_config_refuses_what_cannot_work(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        FeedConfig(**wrong)


def test_close_reason_fits_a_close_frame():
    assert Close(4400, "ä" * 100).reason == "ä" * 61


# client messages --------------------------------------------------------------------------------
def parse(text, *, max_bytes=1000):
    return parse_client_message(text, max_bytes=max_bytes)


def test_a_message_keeps_what_was_given_apart_from_null():
    message = parse('{"type":"session.update","top_k":null,"types":["gap"]}')
    assert isinstance(message, SessionUpdate)
    assert message.model_fields_set == {"type", "top_k", "types"}


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "[]", "3", '"a"', "null", "{", '{"a":NaN}', '{"a":"\\ud800"}'),
        *("[" * 900, '{"a":' * 150, '{"id":"%s"}' % ("x" * 1000), "{}" + "ä" * 500),
    ],
)
def test_what_is_no_json_object_breaks_the_protocol(text):
    with pytest.raises(ProtocolViolation) as caught:
        parse(text)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("text", "told", "reply"),
    [
        ("{}", "type", None),
        ('{"type":"dance","id":"m1"}', "dance", "m1"),
        ('{"type":"session.update","id":"m2","top_k":"many"}', "top_k", "m2"),
        ('{"type":"session.update","id":"m3","wat":1}', "wat", "m3"),
        ('{"type":"session.update","id":7}', "id", None),
        ('{"type":"session.update","id":"%s"}' % ("i" * 200), "id", None),
        ('{"type":"feed.resume"}', "after", None),
        ('{"type":"feed.resume","after":{}}', "after", None),
        ('{"type":"feed.resume","after":{"k":true}}', "after", None),
        ('{"type":"feed.resume","after":{"k":1.5}}', "after", None),
    ],
)
def test_an_unknown_message_is_refused_with_its_id(text, told, reply):
    refusal = parse(text)
    assert isinstance(refusal, Refusal)
    assert told in refusal.problem
    assert refusal.in_reply_to == reply


def test_a_refusal_stays_short():
    wrong = json.dumps({"type": "session.update"} | {f"field{n}": n for n in range(50)})
    assert len(parse(wrong).problem) < 600


@given(st.text(max_size=300))
def test_any_text_is_a_message_a_refusal_or_a_violation(text):
    try:
        parse(text)
    except ProtocolViolation:
        return
    assert text.strip().startswith("{")
