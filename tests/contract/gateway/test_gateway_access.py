"""Every route asks for its scope: none, wrong, right and other tokens at all of them."""

from __future__ import annotations

import hashlib
import json

import httpx2
import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from streamer.gateway.app import PARTS, build_app
from streamer.gateway.backend import Backend, Build
from streamer.gateway.config import GatewayConfig
from streamer.gateway.guard import GuardedRoute, need_of
from streamer.gateway.tokens import SCOPES
from streamer.sources.policy import SourcePolicy
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.contract

ROUTES = [route for part in PARTS for route in part.router.routes]
CALLS = [
    (method, route.path, need_of(route.endpoint).scope)
    for route in ROUTES
    if isinstance(route, APIRoute)
    for method in sorted(route.methods)
]
SOCKETS = [(r.path, need_of(r.endpoint).scope) for r in ROUTES if isinstance(r, APIWebSocketRoute)]
OPEN = {"/healthz", "/readyz", "/version", "/asyncapi.json"}
READERS = {"POST /v1/tickets"}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    path = tmp_path_factory.mktemp("access") / "tokens.json"
    entries = [
        {"name": scope, "sha256": hashlib.sha256(scope.encode()).hexdigest(), "scopes": [scope]}
        for scope in SCOPES
    ]
    path.write_text(json.dumps(entries))
    config = GatewayConfig(tokens_file=str(path))
    backend = Backend(
        store=MemoryStore(), policy=SourcePolicy(), build=Build(version="1"), config=config
    )
    return build_app(backend)


async def _call(app, method, path, *, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    url = path.replace("{stream}", "cam").replace("{model:path}", "tiny")
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        return await client.request(method, url, headers=headers, content=b"{")


def test_nothing_else_is_served(app):
    assert all(isinstance(r, GuardedRoute | APIWebSocketRoute) for r in ROUTES)
    own = {"/openapi.json", "/docs", "/docs/oauth2-redirect"}
    assert {getattr(route, "path", None) for route in app.routes} - {None} == own


def test_scopes_are_as_promised():
    assert {path for _, path, scope in CALLS if scope is None} <= OPEN
    for method, path, scope in CALLS:
        if scope is not None:
            reads = method == "GET" or f"{method} {path}" in READERS
            assert scope == ("read" if reads else "write"), (method, path)
    assert {scope for _, scope in SOCKETS} == {"read"}


@pytest.mark.parametrize(("method", "path", "scope"), CALLS)
async def test_every_route_asks_for_its_scope(app, method, path, scope):
    if scope is None:
        assert (await _call(app, method, path)).status_code in (200, 503)
        return
    for token, error in ((None, None), ("stranger", "invalid_token"), ("", None)):
        answer = await _call(app, method, path, token=token)
        challenge = answer.headers["WWW-Authenticate"]
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert challenge.startswith('Bearer realm="streamer"')
        assert (f'error="{error}"' in challenge) == (error is not None)
    for token in SCOPES:
        answer = await _call(app, method, path, token=token)
        if token in (scope, "admin"):
            assert answer.status_code not in (401, 403)
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
            assert repr(scope) in answer.json()["detail"]
            assert f'scope="{scope}"' in answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize(("path", "scope"), SOCKETS)
def test_every_socket_asks_for_its_scope(app, path, scope):
    url = path.replace("{stream}", "cam") + "?stream=cam"
    codes = {}
    for token in (None, "stranger", *SCOPES):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        with (
            TestClient(app).websocket_connect(url, headers=headers) as socket,
            pytest.raises(WebSocketDisconnect) as caught,
        ):
            socket.receive_text()
        codes[token] = caught.value.code
    # The right ones get as far as to be told that there is no such stream (or query).
    assert {codes[scope], codes["admin"]} <= {4404, 4400}
    assert codes[None] == codes["stranger"] == 4401
    assert {codes[other] for other in SCOPES if other not in (scope, "admin")} == {4403}


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
async def test_documents_are_open(app, path):
    assert (await _call(app, "GET", path)).status_code == 200


def test_document_names_the_scopes(app):
    document = app.openapi()
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    for method, path, scope in CALLS:
        name = path.replace(":path", "")
        operation = document["paths"].get(name, {}).get(method.lower())
        if operation is not None:
            assert operation.get("security") == (scope and [{"bearer": [scope]}])
