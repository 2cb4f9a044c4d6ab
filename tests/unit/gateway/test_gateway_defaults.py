"""What a refusal says of values that the caller did not give."""

import pytest

pytestmark = pytest.mark.unit

WORLD = {"source": "synthetic:bounce"}


async def test_a_default_out_of_reach_is_called_one(ready_http):
    change = {"sampling": {"frames": 2}}
    detail = (await ready_http.post("/v1/streams", json=WORLD | change)).json()["detail"]
    assert "That is this server's default; give horizons_s." in detail
    named = change | {"horizons_s": [2]}
    assert "default" not in (await ready_http.post("/v1/streams", json=WORLD | named)).text
