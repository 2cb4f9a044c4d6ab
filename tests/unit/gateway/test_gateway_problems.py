"""Whatever goes wrong leaves as a problem document with a request id, and nothing leaks."""

from __future__ import annotations

import logging

import pytest

from streamer.errors import CapacityError
from streamer.gateway.config import GatewayConfig

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nope", 404, "not_found"),
        ("GET", "/v1/streams/", 404, "not_found"),
        ("GET", "/v1/streams/none", 404, "not_found"),
        ("PUT", "/v1/streams", 405, "method_not_allowed"),
        ("GET", "/v1/streams/none/feed", 426, "upgrade_required"),
        ("GET", "/v1/feed", 426, "upgrade_required"),
    ],
)
async def test_every_answer_is_a_problem(http, method, path, status, code):
    answer = await http.request(method, path)
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["type"] == f"urn:streamer:problem:{code}"
    assert problem["request_id"] == answer.headers["x-request-id"]


async def test_a_feed_of_many_says_where_server_sent_events_are(http):
    answer = await http.get("/v1/feed?stream=a", headers={"accept": "text/event-stream"})
    assert answer.headers["upgrade"] == "websocket"
    assert "/v1/streams/{stream}/feed" in answer.json()["detail"]


async def test_request_id_is_kept_if_it_is_one(http):
    for given, kept in (("abc-1", True), ("x" * 65, False), ("a\tb", False)):
        answer = await http.get("/version", headers={"x-request-id": given})
        assert (answer.headers["x-request-id"] == given) is kept


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"{nope", 422, "invalid_request"),
        (b"", 422, "invalid_request"),
        (b"[]", 422, "invalid_request"),
        (b'{"source": NaN}', 422, "invalid_request"),
        (b"\xff\xfe", 422, "invalid_request"),
        (b"x" * 70_000, 413, "body_too_large"),
    ],
)
async def test_bad_bodies(ready_http, content, status, code):
    headers = {"content-type": "application/json"}
    answer = await ready_http.post("/v1/streams", content=content, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_size_is_counted_without_a_length_too(ready_http):
    async def chunks():
        for _ in range(70):
            yield b" " * 1000

    answer = await ready_http.post(
        "/v1/streams", content=chunks(), headers={"content-type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


async def test_json_needs_its_content_type(ready_http):
    """Else a page of another site could send it without being asked for permission."""
    body = b'{"id":"a","source":"synthetic:bounce"}'
    answer = await ready_http.post("/v1/streams", content=body)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert answer.json()["detail"] == "Send the body with Content-Type: application/json."
    for kind, status in (
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/json; charset=utf-8", 201),
        ("application/merge-patch+json", 200),
    ):
        headers = {"content-type": kind}
        answer = await ready_http.post("/v1/streams", content=body, headers=headers)
        assert answer.status_code == status, kind
    assert (await ready_http.post("/v1/tickets")).status_code == 201  # has no body


async def test_pages_of_other_sites_may_not_write(make_gateway):
    gateway = make_gateway(config=GatewayConfig(allowed_origins=("https://wall.example",)))
    await gateway.announce()
    async with gateway.http() as http:
        codes = {
            origin: (
                await http.post(
                    "/v1/streams", json={"source": "synthetic:bounce"}, headers={"origin": origin}
                )
            ).status_code
            for origin in (
                "http://evil.example",
                "http://gateway",
                "https://wall.example",
                "null",
                "http://[",
            )
        }
        read = await http.get("/version", headers={"origin": "http://evil.example"})
    assert codes == {
        "http://evil.example": 403,
        "http://gateway": 201,
        "https://wall.example": 201,
        "null": 403,
        "http://[": 403,
    }
    assert "access-control-allow-origin" not in read.headers


async def test_a_bug_says_only_where_to_look(gateway, http, monkeypatch, caplog):
    async def broken(*args, **kwargs):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(gateway.store, "list_streams", broken)
    with caplog.at_level(logging.ERROR, logger="streamer.gateway.envelope"):
        answer = await http.get("/v1/streams")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    (record,) = caplog.records
    assert record.request_id == answer.json()["request_id"]


async def test_retry_after_is_whole_seconds(gateway, http, monkeypatch):
    async def full(*args, **kwargs):
        raise CapacityError("No room.", 2.3456789)

    monkeypatch.setattr(gateway.store, "list_streams", full)
    answer = await http.get("/v1/streams")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")
    assert answer.json()["retry_after_s"] == 2.3


def test_config_says_what_is_wrong():
    from streamer.errors import ConfigError

    for change in ({"max_page": 0}, {"min_fps": 5, "max_fps": 1}, {"store_timeout_s": 0}):
        with pytest.raises(ConfigError):
            GatewayConfig(**change)
