"""Streams by REST: register, list, show, pause, delete, and every way to be refused."""

from __future__ import annotations

import asyncio

import pytest

from streamer.clock import wall_ns
from streamer.records import Sampling, StreamSpec

pytestmark = pytest.mark.unit

WORLD = {"source": "synthetic:bounce?seed=1"}


async def test_created_with_every_default_echoed(ready_http):
    answer = await ready_http.post("/v1/streams", json=WORLD | {"id": "demo"})
    view = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == "/v1/streams/demo"
    assert view["sampling"] == {"frames": 64, "fps": 4.0, "stride_s": 1.0}
    assert view["horizons_s"] == [0.5, 1.0, 2.0]
    assert view["model"] == {"name": "tiny", "fingerprint": "0123456789ab", "trained": False}
    assert (view["desired"], view["state"], view["reason"]) == ("live", "starting", "waiting")
    assert (view["head_seq"], view["first_seq"], view["epoch"]) == (0, 1, "e1")
    assert (await ready_http.get(view["feed"])).status_code == 426


async def test_what_is_not_said_is_as_the_service_was_set(make_gateway):
    defaults = StreamSpec(
        source="",
        mode="gap",
        horizons_s=(1.0,),
        sampling=Sampling(frames=32, fps=8.0, stride_s=0.5),
        retain_s=60.0,
    )
    gateway = make_gateway(defaults=defaults)
    await gateway.announce()
    async with gateway.http() as http:
        view = (await http.post("/v1/streams", json=WORLD | {"sampling": {"fps": 4}})).json()
    assert view["sampling"] == {"frames": 32, "fps": 4.0, "stride_s": 0.5}
    assert (view["mode"], view["horizons_s"], view["retain_s"]) == ("gap", [1.0], 60.0)


async def test_same_body_is_the_same_stream_another_one_a_conflict(ready_http):
    body = WORLD | {"id": "demo", "horizons_s": [0.3]}
    codes = [
        (await ready_http.post("/v1/streams", json=each)).status_code
        for each in (body, body, body | {"horizons_s": [0.5]}, body | {"retain_s": 60})
    ]
    assert codes == [201, 200, 200, 409]


async def test_id_is_chosen_when_absent(ready_http):
    ids = {(await ready_http.post("/v1/streams", json=WORLD)).json()["id"] for _ in range(2)}
    assert len(ids) == 2


async def test_horizons_are_rounded_up_to_steps(ready_http):
    answer = await ready_http.post("/v1/streams", json=WORLD | {"horizons_s": [1.2, 0.1]})
    assert answer.json()["horizons_s"] == [0.5, 1.5]


@pytest.mark.parametrize(
    ("change", "status", "code", "words"),
    [
        ({"horizons_s": [99]}, 422, "horizon_unreachable", "15.5"),
        ({"horizons_s": [1] * 17}, 400, "config", "at most 16"),
        ({"model": "big"}, 404, "not_found", "served: tiny"),
        ({"sampling": {"stride_s": 0.7}}, 400, "config", "tubelet"),
        ({"sampling": {"fps": 1000}}, 400, "config", "from 0.5 to 60"),
        ({"sampling": {"frames": 128}}, 400, "config", "built for 64"),
        ({"retain_s": 1e9}, 400, "config", "86400"),
        ({"source": "rtsp://127.0.0.1/x"}, 403, "source_forbidden", "loopback"),
        ({"source": "file:///etc/passwd"}, 403, "source_forbidden", "allow"),
        ({"source": "no scheme"}, 400, "config", "scheme"),
        ({"source": "synthetic:nope"}, 400, "config", "bounce"),
        ({"source": "synthetic:bounce?sed=1"}, 400, "config", "did you mean 'seed'?"),
        ({"source": "synthetic:bounce?fps=1e9"}, 400, "config", "from 0.1 to 120"),
        ({"id": "a/b"}, 422, "invalid_request", "id"),
        ({"id": "{x}"}, 422, "invalid_request", "id"),
        ({"horizons_s": []}, 422, "invalid_request", "horizons_s"),
        ({"horizons_s": [-1]}, 422, "invalid_request", "horizons_s.0"),
        ({"horizon_s": [1]}, 422, "invalid_request", "did you mean horizons_s?"),
        ({"fps": 4}, 422, "invalid_request", "did you mean sampling.fps?"),
        ({"sampling": {"stride": 1}}, 422, "invalid_request", "did you mean stride_s?"),
    ],
)
async def test_refused_with_the_way_out(ready_http, change, status, code, words):
    answer = await ready_http.post("/v1/streams", json=WORLD | change)
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (problem["status"], problem["code"]) == (status, code) == (answer.status_code, code)
    assert words in problem["detail"]
    assert problem["retryable"] is False
    assert (await ready_http.get("/v1/streams")).json()["streams"] == []


async def test_no_model_yet_is_worth_another_try(http):
    answer = await http.post("/v1/streams", json=WORLD)
    assert answer.status_code == 503
    assert answer.json()["retryable"] is True
    assert answer.headers["retry-after"] == "5"


async def test_paged_in_id_order(gateway, http):
    for name in ("c", "a", "e", "b", "d"):
        await gateway.stream(name)
    seen, after, pages = [], "", 0
    while after is not None:
        page = (await http.get("/v1/streams", params={"after": after, "limit": 2})).json()
        seen += [view["id"] for view in page["streams"]]
        after, pages = page["next_after"], pages + 1
    assert (seen, pages) == (["a", "b", "c", "d", "e"], 3)


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 201}, {"limt": 3}])
async def test_bad_pages(http, query):
    assert (await http.get("/v1/streams", params=query)).status_code in (400, 422)


async def test_credentials_never_come_back(gateway, ready_http):
    secret = "hunter2"
    await gateway.stream(source=f"rtsp://joe:{secret}@192.0.2.7/main?token={secret}")
    status = {"state": "reconnecting", "detail": f"rtsp://joe:{secret}@192.0.2.7 refused"}
    await gateway.report(status)
    answers = [
        await ready_http.get("/v1/streams/cam"),
        await ready_http.get("/v1/streams"),
        await ready_http.patch("/v1/streams/cam", json={"state": "paused"}),
        await ready_http.post("/v1/streams", json={"source": [f"rtsp://joe:{secret}@x/"]}),
        await ready_http.post("/v1/streams", json={"source": f"rtsp://joe:{secret}@127.0.0.1/"}),
        await ready_http.post("/v1/streams", json={"source": f"gopher://joe:{secret}@x/"}),
        await ready_http.post("/v1/streams", json={"id": "cam", "source": "synthetic:zone"}),
    ]
    assert [a.status_code for a in answers] == [200, 200, 200, 422, 403, 403, 409]
    assert all(secret not in a.text for a in answers)
    assert answers[0].json()["source"] == "rtsp://***@192.0.2.7/main?token=***"


async def test_running_session_speaks_for_itself(gateway, http):
    await gateway.stream()
    await gateway.append(3)
    status = {
        "state": "live", "reason": "filling", "detail": "", "retry_in_s": None, "have": 16,
        "need": 64, "source": "x", "owner": "here", "generation": 2, "fps_in": 15.0,
        "fps_used": 4.0, "pictures": 90, "used": 24, "sampled_out": 66, "filled": 0, "dropped": 1,
        "clips": 3, "clips_encoded": 2, "clips_published": 2, "clips_superseded": 1,
        "clips_rejected": 0, "rollouts_superseded": 3, "lag_s": 0.2, "last_error": "",
    }  # fmt: skip
    await gateway.report(status)
    view = (await http.get("/v1/streams/cam")).json()
    assert (view["state"], view["have"], view["need"]) == ("live", 16, 64)
    assert view["rates"] == {"fps_in": 15.0, "fps_used": 4.0}
    assert view["drops"] == {
        "dropped": 1,
        "clips_superseded": 1,
        "clips_rejected": 0,
        "rollouts_superseded": 3,
    }
    assert view["counts"]["clips_published"] == 2
    assert (view["owner"], view["head_seq"], view["generation"]) == ("here", 3, 2)


async def test_ended_stream_says_why_until_it_is_wanted_again(gateway, http):
    lease = await gateway.stream()
    body = b'{"type":"stream.state","state":"failed","reason":"unauthorized","detail":"no"}'
    await gateway.store.append("cam", lease=lease.token, body=body)
    await gateway.store.finish_stream("cam", lease=lease.token, outcome="failed")
    view = (await http.get("/v1/streams/cam")).json()
    assert (view["outcome"], view["state"], view["reason"]) == ("failed", "failed", "unauthorized")
    view = (await http.patch("/v1/streams/cam", json={"state": "live"})).json()
    assert (view["outcome"], view["state"]) == ("", "starting")


async def _spoken(gateway, **status):
    """A session that said so, of the record's revision then."""
    await gateway.stream()
    revision = (await gateway.store.get_stream("cam")).revision
    counts = {"dropped": 7, "clips_superseded": 0, "clips_rejected": 0, "generation": 3}
    await gateway.report({"revision": revision} | counts | status)


async def test_a_stream_that_is_wanted_again_does_not_show_its_last_session(gateway, http):
    """Whoever waits for `ended` would be done before it began."""
    await _spoken(gateway, state="ended", reason="eof")
    lease = gateway.leases["cam"].token
    await gateway.store.finish_stream("cam", lease=lease, outcome="ended")
    for is_let_go in (False, True):
        if is_let_go:
            await gateway.store.release_lease(gateway.leases["cam"])
        view = (await http.patch("/v1/streams/cam", json={"state": "live"})).json()
        assert (view["state"], view["reason"]) == ("starting", "waiting")
        assert (view["drops"], view["generation"]) == (None, None)


async def test_a_paused_stream_that_goes_on_waits(gateway, http):
    """Its session may still be letting go: that it is over stands in the log."""
    await _spoken(gateway, state="live", reason="")
    view = (await http.patch("/v1/streams/cam", json={"state": "paused"})).json()
    assert (view["desired"], view["state"], view["reason"]) == ("paused", "live", "pausing")
    await gateway.append_state("paused")
    view = (await http.get("/v1/streams/cam")).json()
    assert (view["state"], view["reason"]) == ("paused", "")
    view = (await http.patch("/v1/streams/cam", json={"state": "live"})).json()
    assert (view["state"], view["reason"], view["generation"]) == ("starting", "waiting", None)


async def test_a_session_that_has_not_seen_a_change_yet_is_shown(gateway, http):
    await _spoken(gateway, state="live", reason="")
    await gateway.append()
    for state in ("paused", "live"):  # sooner than it looked
        view = (await http.patch("/v1/streams/cam", json={"state": state})).json()
    assert (view["state"], view["reason"], view["generation"]) == ("live", "", 3)


async def test_pause_and_delete(gateway, http):
    lease = await gateway.stream()
    await gateway.store.release_lease(lease)
    view = (await http.patch("/v1/streams/cam", json={"state": "paused"})).json()
    assert (view["desired"], view["state"], view["revision"]) == ("paused", "paused", 2)
    assert (await http.patch("/v1/streams/cam", json={"state": "dead"})).status_code == 422
    assert (await http.delete("/v1/streams/cam")).status_code == 204
    for method in ("GET", "DELETE"):
        assert (await http.request(method, "/v1/streams/cam")).status_code == 404


async def test_changed_in_part_and_the_rest_as_it_was(ready_http):
    body = WORLD | {"id": "cam", "horizons_s": [1], "sampling": {"frames": 32}, "retain_s": 60}
    before = (await ready_http.post("/v1/streams", json=body)).json()
    change = {"mode": "gap", "horizons_s": [0.7], "sampling": {"stride_s": 0.5}}
    answer = await ready_http.patch("/v1/streams/cam", json=change)
    after = answer.json()
    assert answer.status_code == 200
    assert after == before | {
        "mode": "gap",
        "horizons_s": [1.0],
        "sampling": {"frames": 32, "fps": 4.0, "stride_s": 0.5},
        "revision": 2,
    }
    again = (await ready_http.patch("/v1/streams/cam", json=change)).json()
    assert again["revision"] == 2
    changes = {"source": "synthetic:zone", "model": "tiny", "retain_s": 90}
    after = (await ready_http.patch("/v1/streams/cam", json=changes)).json()
    assert (after["source"], after["retain_s"], after["revision"]) == ("synthetic:zone", 90, 3)
    assert after["horizons_s"] == [1.0]


async def test_horizons_follow_another_rate_as_long_as_they_can(ready_http):
    body = WORLD | {"id": "cam", "horizons_s": [0.5, 10]}
    await ready_http.post("/v1/streams", json=body)
    answer = await ready_http.patch("/v1/streams/cam", json={"sampling": {"fps": 8}})
    assert (answer.status_code, answer.json()["code"]) == (422, "horizon_unreachable")
    assert "7.75" in answer.json()["detail"]
    change = {"sampling": {"fps": 8}, "horizons_s": [0.3]}
    assert (await ready_http.patch("/v1/streams/cam", json=change)).json()["horizons_s"] == [0.5]


async def test_the_same_body_means_the_settings_of_now(ready_http):
    body = WORLD | {"id": "cam"}
    await ready_http.post("/v1/streams", json=body)
    await ready_http.patch("/v1/streams/cam", json={"mode": "gap"})
    assert (await ready_http.post("/v1/streams", json=body)).status_code == 409
    assert (await ready_http.post("/v1/streams", json=body | {"mode": "gap"})).status_code == 200


@pytest.mark.parametrize(
    ("change", "status", "code", "words"),
    [
        ({"horizons_s": [99]}, 422, "horizon_unreachable", "15.5"),
        ({"state": "paused", "horizons_s": [99]}, 422, "horizon_unreachable", "15.5"),
        ({"state": "live", "horizons_s": [99]}, 422, "horizon_unreachable", "15.5"),
        ({"model": "big"}, 404, "not_found", "served: tiny"),
        ({"sampling": {"stride_s": 0.7}}, 400, "config", "tubelet"),
        ({"retain_s": 1e9}, 400, "config", "86400"),
        ({"source": "rtsp://127.0.0.1/x"}, 403, "source_forbidden", "loopback"),
        ({"source": "synthetic:bounce?sed=1"}, 400, "config", "did you mean 'seed'?"),
        ({"horizon_s": [1]}, 422, "invalid_request", "did you mean horizons_s?"),
        ({"stride_s": 1}, 422, "invalid_request", "did you mean sampling.stride_s?"),
        ({"state": "dead"}, 422, "invalid_request", "state"),
        ({}, 422, "invalid_request", "nothing to change"),
        ({"sampling": {}}, 422, "invalid_request", "nothing to change"),
    ],
)
async def test_a_change_is_refused_whole(ready_http, change, status, code, words):
    before = (await ready_http.post("/v1/streams", json=WORLD | {"id": "cam"})).json()
    answer = await ready_http.patch("/v1/streams/cam", json=change)
    problem = answer.json()
    assert (problem["status"], problem["code"]) == (status, code)
    assert words in problem["detail"]
    assert (await ready_http.get("/v1/streams/cam")).json() == before


async def test_a_stream_that_is_not_there_cannot_be_changed(ready_http):
    assert (await ready_http.patch("/v1/streams/x", json={"mode": "gap"})).status_code == 404


async def test_a_pause_needs_no_model_and_no_look_at_the_source(gateway, http):
    await gateway.stream(source="rtsp://192.0.2.7/main")
    assert (await http.patch("/v1/streams/cam", json={"state": "paused"})).status_code == 200
    assert (await http.patch("/v1/streams/cam", json={"mode": "gap"})).status_code == 503


async def test_state_and_settings_at_once(ready_http):
    await ready_http.post("/v1/streams", json=WORLD | {"id": "cam"})
    for state in ("paused", "live"):
        change = {"state": state, "retain_s": 60 + len(state)}
        view = (await ready_http.patch("/v1/streams/cam", json=change)).json()
        assert (view["desired"], view["retain_s"]) == (state, change["retain_s"])


async def test_changes_at_once_are_all_made(ready_http):
    await ready_http.post("/v1/streams", json=WORLD | {"id": "cam"})
    changes = [{"mode": "gap"}, {"retain_s": 60}, {"horizons_s": [2]}, {"sampling": {"fps": 8}}]
    answers = await asyncio.gather(
        *(ready_http.patch("/v1/streams/cam", json=change) for change in changes)
    )
    assert [answer.status_code for answer in answers] == [200] * 4
    view = (await ready_http.get("/v1/streams/cam")).json()
    assert (view["mode"], view["retain_s"], view["horizons_s"]) == ("gap", 60, [2.0])
    assert (view["sampling"]["fps"], view["revision"]) == (8.0, 5)


async def test_what_the_session_does_now_is_told(gateway, http):
    await gateway.stream()
    await gateway.report({"state": "live", "revision": 1})
    await http.patch("/v1/streams/cam", json={"state": "live"})
    await gateway.store.change_stream("cam", StreamSpec(source="synthetic:x", retain_s=60))
    view = (await http.get("/v1/streams/cam")).json()
    assert (view["revision"], view["applied_revision"]) == (2, 1)
    await gateway.store.release_lease(gateway.leases["cam"])
    assert (await http.get("/v1/streams/cam")).json()["applied_revision"] is None


async def test_a_quarantined_stream_says_for_how_long(gateway, http):
    lease = await gateway.stream()
    until_ns = wall_ns() + 300 * 10**9
    status = {"state": "failed", "reason": "quarantined", "detail": "why", "until_ns": until_ns}
    await gateway.report(status)
    await gateway.store.finish_stream("cam", lease=lease.token, outcome="quarantined")
    await gateway.store.release_lease(lease)
    view = (await http.get("/v1/streams/cam")).json()
    assert (view["outcome"], view["state"]) == ("quarantined", "failed")
    assert (view["reason"], view["detail"]) == ("quarantined", "why")
    assert 290 < view["retry_in_s"] <= 300
    view = (await http.patch("/v1/streams/cam", json={"state": "live"})).json()
    assert (view["outcome"], view["state"], view["reason"]) == ("", "starting", "waiting")


async def test_a_stream_without_room_says_so(gateway, http):
    lease = await gateway.stream()
    body = b'{"type":"stream.state","state":"starting","reason":"no_capacity","detail":"full"}'
    await gateway.store.append("cam", lease=lease.token, body=body)
    await gateway.store.release_lease(lease)
    view = (await http.get("/v1/streams/cam")).json()
    assert (view["state"], view["reason"], view["detail"]) == ("starting", "no_capacity", "full")


async def test_models_as_announced(ready_http, gateway):
    (model,) = (await ready_http.get("/v1/models")).json()["models"]
    assert (model["name"], model["trained"]) == ("tiny", False)
    assert model["replicas"] == {"encoder": 1, "rollout": 1}
    detail = (await ready_http.get("/v1/models/tiny")).json()
    assert detail["config"] == {"hidden_size": 192}
    assert (await ready_http.get("/v1/models/org/other")).status_code == 404
