"""The feed as Server-Sent Events, for browsers, curl and proxies that know no WebSocket.

The same session as on a socket. ``event:`` is the message's type, ``id:`` the cursor after it (of a
retained event: its own id), so `Last-Event-ID` resumes wherever the connection broke. What is
refused is refused before the stream begins, as a problem document; options stand in the query.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from streamer.errors import CapacityError, StreamerError, SubscriberTooSlow
from streamer.events.compose import Message
from streamer.events.session import FeedSession
from streamer.gateway.auth import Gate, Grant
from streamer.gateway.backend import Backend, FromBackend
from streamer.gateway.feed_parameters import feed_parameters
from streamer.gateway.feed_query import FeedQuery, parse_one
from streamer.gateway.feed_run import FeedRun, Gone, opened_session
from streamer.gateway.guard import FromGate, FromGrant, GuardedRoute, needs
from streamer.gateway.hub import FromHub, Hub
from streamer.gateway.problems import Problem
from streamer.gateway.streams import StreamPath

__all__ = ["EventStream", "router"]

router = APIRouter(tags=["feed"], route_class=GuardedRoute)
log = logging.getLogger(__name__)

_MEDIA_TYPE = "text/event-stream"
_RETRY_MS = 1000
_GOODBYE_S = 2.0
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would keep events back
]
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {_MEDIA_TYPE: {"schema": {"type": "string"}}}, "description": "events"},
    400: {"model": Problem, "description": "the query cannot be"},
    404: {"model": Problem, "description": "no such stream"},
    410: {"model": Problem, "description": "strict, and the events after the cursor are gone"},
    426: {"model": Problem, "description": "neither a WebSocket nor Server-Sent Events"},
    503: {"model": Problem, "description": "too many subscribers, or shutting down"},
}


@router.get(
    "/v1/streams/{stream}/feed",
    summary="Follow a stream as Server-Sent Events",
    response_class=Response,
    responses=_ANSWERS,
    openapi_extra={"parameters": feed_parameters()},
)
@needs("read", or_ticket=True)
async def feed_events(
    stream: StreamPath,
    request: Request,
    backend: FromBackend,
    hub: FromHub,
    gate: FromGate,
    grant: FromGrant,
    last_event_id: Annotated[str | None, Header(max_length=64)] = None,
) -> Response:
    """With `Accept: text/event-stream`; the same path is a WebSocket. Query: `after` (a cursor;
    without it from now on), `strict`, and the options of a feed, lists with commas."""
    if _MEDIA_TYPE not in request.headers.get("accept", ""):
        raise HTTPException(
            426,
            f"This is a WebSocket, or Server-Sent Events with Accept: {_MEDIA_TYPE}.",
            headers={"Upgrade": "websocket"},
        )
    query = parse_one(request.query_params, stream, last_event_id=last_event_id)
    grant.check_stream(stream)
    return EventStream(query, backend=backend, hub=hub, gate=gate, grant=grant)


@router.get(
    "/v1/feed",
    summary="Several streams on one WebSocket",
    response_class=Response,
    status_code=426,
    responses={426: {"model": Problem, "description": "this is no WebSocket"}},
)
@needs("read", or_ticket=True)
async def feed_of_many_events() -> Response:
    """WebSocket only: a cursor of Server-Sent Events holds one stream. `/asyncapi.json` has it."""
    raise HTTPException(
        426,
        "This is a WebSocket only; Server-Sent Events are at /v1/streams/{stream}/feed.",
        headers={"Upgrade": "websocket"},
    )


class EventStream(Response):
    """One feed as the body of a response."""

    def __init__(
        self, query: FeedQuery, *, backend: Backend, hub: Hub, gate: Gate, grant: Grant
    ) -> None:
        super().__init__(media_type=_MEDIA_TYPE)
        self._query = query
        self._backend = backend
        self._hub = hub
        self._gate = gate
        self._grant = grant

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises `StreamerError` as long as nothing was sent."""
        if self._backend.draining.is_set():
            raise CapacityError("This gateway is shutting down.")
        with self._hub.admit(self._grant.name):
            session = await opened_session(self._query, backend=self._backend, hub=self._hub)
            if session.close is not None and session.close.error is not None:
                raise session.close.error
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await self._stream(session, receive, send)

    async def _stream(self, session: FeedSession, receive: Receive, send: Send) -> None:
        line = _BodyLine(session, receive, send, stream=self._query.streams[0])
        run = FeedRun(
            session,
            line,
            backend=self._backend,
            hub=self._hub,
            gate=self._gate,
            grant=self._grant,
        )
        try:
            await run.run()
        except StreamerError as error:
            # The end of the body is all that can be said now; who comes again is told why.
            log.info("event stream ended", extra={"why": error.message})
            if isinstance(error, SubscriberTooSlow):
                return
        except Gone:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE_S):
                await send({"type": "http.response.body", "body": b""})


class _BodyLine:
    """A response's body as a `Line`."""

    def __init__(self, session: FeedSession, receive: Receive, send: Send, *, stream: str) -> None:
        self._session = session
        self._receive = receive
        self._send = send
        self._stream = stream
        self._head = f"retry: {_RETRY_MS}\n"

    async def send(self, message: Message) -> None:
        cursor = self._session.cursors[self._stream]
        head, self._head = f"{self._head}event: {message.type}\nid: {cursor}\ndata: ", ""
        # A raw line break can only be white space between the tokens of JSON.
        data = message.data.replace(b"\r", b" ").replace(b"\n", b" ")
        body = head.encode() + data + b"\n\n"
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def receive(self) -> str | bytes:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        raise Gone
