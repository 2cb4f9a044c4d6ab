"""A web page whose name was made to resolve to this machine gets nothing."""

from __future__ import annotations

import json

import httpx2
import pytest
import websockets

from streamer.gateway.config import GatewayConfig

pytestmark = pytest.mark.unit

WALL = GatewayConfig(allowed_origins=("https://wall.example",))


async def status(gateway, host, *, origin=None, server="127.0.0.1"):
    transport = httpx2.ASGITransport(app=gateway.app)
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://{server}:8000") as http:
        headers = {"Host": host} | ({"Origin": origin} if origin else {})
        return (await http.get("/version", headers=headers)).status_code


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost:8000", 200),
        ("LOCALHOST", 200),
        ("app.localhost:8000", 200),
        ("[::1]:8000", 200),
        ("192.168.1.5:8000", 200),
        ("streamer:8000", 200),
        ("wall.example", 200),
        ("evil.example:8000", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("evillocalhost.example", 403),
        ("[", 403),
    ],
)
async def test_over_loopback_only_own_names_are_answered(make_gateway, host, expected):
    assert await status(make_gateway(config=WALL), host) == expected


async def test_a_page_of_the_same_strange_name_is_no_page_of_ours(gateway):
    found = await status(gateway, "evil.example:8000", origin="http://evil.example:8000")
    assert found == 403


async def test_where_tokens_or_others_are_asked_for_any_name_will_do(make_gateway, tmp_path):
    tokens = tmp_path / "tokens.yaml"
    line = {"name": "wall", "sha256": "0" * 64, "scopes": ["read"]}
    tokens.write_text(json.dumps([line]))
    with_tokens = make_gateway(config=GatewayConfig(tokens_file=str(tokens)))
    assert await status(with_tokens, "streamer.example") == 200
    assert await status(make_gateway(), "streamer.example", server="192.0.2.7") == 200


async def test_sockets_are_refused_alike(gateway):
    await gateway.stream()
    async with gateway.served() as address:
        host, port = address.split(":")
        for name, is_open in (("localhost", True), ("evil.example", False)):
            url = f"ws://{name}:{port}/v1/streams/cam/feed"
            opening = websockets.connect(url, host=host, port=int(port))
            if is_open:
                async with opening as socket:
                    assert "session.created" in await socket.recv()
            else:
                with pytest.raises(websockets.InvalidStatus, match="403"):
                    await opening
