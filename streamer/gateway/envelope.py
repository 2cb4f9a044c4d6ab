"""Around every request: its id, the origin check, the size limit and the last handler.

Plain ASGI, so that sockets pass through it too and bodies are never buffered.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamer.errors import Forbidden
from streamer.gateway.config import GatewayConfig
from streamer.gateway.problems import early_problem, internal_problem
from streamer.gateway.rebinding import STRANGE_HOST, has_strange_host

__all__ = ["Envelope"]

log = logging.getLogger(__name__)

_READ_ONLY = frozenset({"GET", "HEAD", "OPTIONS"})
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FOREIGN = (
    "Web pages of other sites may not call this server; its operator can allow an origin in"
    " gateway.allowed_origins."
)


class Envelope:
    """ASGI middleware of the gateway.

    Args:
        app: what is inside.
        config: origins and the size limit.
        limits: path -> bytes, where a body may be larger.
    """

    def __init__(
        self, app: ASGIApp, *, config: GatewayConfig, limits: Mapping[str, int] | None = None
    ) -> None:
        self._app = app
        self._config = config
        self._limits = limits or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        scope.setdefault("state", {})["request_id"] = _request_id(headers)
        if scope["type"] == "http":
            await self._answer(scope, receive, send, headers=headers)
        elif self._is_foreign(headers):
            await _refuse_socket(scope, receive, send, detail=_FOREIGN)
        elif self._is_strange(scope, headers):
            await _refuse_socket(scope, receive, send, detail=STRANGE_HOST)
        else:
            await self._app(scope, receive, send)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, *, headers: Headers
    ) -> None:
        request_id = scope["state"]["request_id"]
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        try:
            inside = self._refusal(scope, headers) or self._app
            await inside(scope, self._limited(scope, receive), send_with_id)
        except Exception:
            log.exception("request failed", extra={"request_id": request_id})
            if started:
                raise
            await internal_problem(Request(scope))(scope, receive, send_with_id)

    def _refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        if scope["method"] not in _READ_ONLY and self._is_foreign(headers):
            return early_problem(Request(scope), status=403, detail=_FOREIGN)
        if self._is_strange(scope, headers):
            return early_problem(Request(scope), status=403, detail=STRANGE_HOST)
        length = headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length) > self._limit(scope):
            return early_problem(Request(scope), status=413, detail=self._too_large(scope))
        return None

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Counts a body that comes in chunks, without a length."""
        left = self._limit(scope)

        async def receive_counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413, self._too_large(scope))
            return message

        return receive_counted

    def _limit(self, scope: Scope) -> int:
        return self._limits.get(scope["path"], self._config.max_body_bytes)

    def _too_large(self, scope: Scope) -> str:
        return f"A request body may have {self._limit(scope)} bytes; this one has more."

    def _is_strange(self, scope: Scope, headers: Headers) -> bool:
        return has_strange_host(scope, headers.get("host"), config=self._config)

    def _is_foreign(self, headers: Headers) -> bool:
        """A page of another site calls: browsers let it open sockets and send simple requests. (It
        may send a GET too, but cannot read the answer: there is no CORS header.)"""
        origin = headers.get("origin")
        if origin is None or origin in self._config.allowed_origins:
            return False
        try:
            return urlsplit(origin).netloc != headers.get("host")
        except ValueError:  # no URL, like "http://["
            return True


async def _refuse_socket(scope: Scope, receive: Receive, send: Send, *, detail: str) -> None:
    """Before the handshake: by 403 with a body, as far as the server can, else by an empty one."""
    if "websocket.http.response" in scope.get("extensions", {}):
        problem = early_problem(HTTPConnection(scope), status=403, detail=detail)
        await problem(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": Forbidden.ws_close, "reason": ""})


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
