"""An unknown name is answered with one that this very route takes, or with none."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("method", "path", "name", "instead"),
    [
        ("POST", "/v1/streams", "fps", "sampling.fps"),
        ("POST", "/v1/streams", "start_s", None),
        ("PATCH", "/v1/streams/demo", "stat", "state"),
        ("POST", "/v1/anticipations", "strides", "stride_s"),
        ("POST", "/v1/anticipations", "context_ids", None),
        ("POST", "/v1/latents", "horizons_s", None),
        ("POST", "/v1/latents", "strict", None),
        ("POST", "/v1/latents", "stride_s", "start_s"),
        ("GET", "/v1/streams/demo/snapshot.jpg", "horizon_s", None),
        ("GET", "/v1/streams/demo/latent.png", "horizons_s", "horizon_s"),
        ("GET", "/v1/streams/demo/anticipations", "befor", "before"),
    ],
)
async def test_the_nearest_name_is_one_of_the_route(http, method, path, name, instead):
    body = {"json": {name: 1}} if path.startswith("/v1/streams") and method != "GET" else {}
    params = {} if body else {name: "1"}
    answer = await http.request(method, path, params=params, **body)
    found = {problem["field"]: problem["message"] for problem in answer.json()["errors"]}
    suggestion = "" if instead is None else f"; did you mean {instead}?"
    assert found[name] == f"there is no such field{suggestion}"


@pytest.mark.parametrize(
    ("method", "body", "detail"),
    [
        ("POST", [], "body: must be a JSON object"),
        ("POST", {"source": "a:b", "id": "a b"}, "id: write letters, digits, dots, dashes and"),
        ("POST", {"source": "a:b", "horizons_s": []}, "horizons_s: give at least 1"),
        ("POST", {"source": "a:b", "horizons_s": ["x"]}, "horizons_s.0: must be a number"),
        ("POST", {"source": ""}, "source: must not be empty"),
        ("POST", {}, "source: is required"),
        ("PATCH", {"state": "on"}, "state: must be 'live' or 'paused'"),
        ("PATCH", {}, "body: nothing to change; give at least one of state, "),
    ],
)
async def test_what_is_wrong_is_said_in_words_of_ours(http, method, body, detail):
    path = "/v1/streams" if method == "POST" else "/v1/streams/demo"
    answer = await http.request(method, path, json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(detail)
