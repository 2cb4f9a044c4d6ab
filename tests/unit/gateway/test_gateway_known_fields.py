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
