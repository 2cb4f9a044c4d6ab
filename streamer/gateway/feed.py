"""The WebSocket feeds: of one stream, and of several on one socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect

from streamer.errors import ProtocolViolation, StreamerError
from streamer.events.compose import Message
from streamer.gateway.auth import Gate, Grant
from streamer.gateway.backend import Backend, FromBackend
from streamer.gateway.feed_query import FeedQuery, parse_many, parse_one
from streamer.gateway.feed_run import FeedRun, Gone, opened_session
from streamer.gateway.guard import FromGate, need_of, needs
from streamer.gateway.hub import FromHub, Hub

__all__ = ["SUBPROTOCOL", "router"]

router = APIRouter(tags=["feed"])
log = logging.getLogger(__name__)

SUBPROTOCOL = "streamer.v1"
_RESTART_CODE = 1012
_GOODBYE_S = 2.0
"""How long a close frame may take to leave; a socket that does not take it is dropped."""


@router.websocket("/v1/streams/{stream}/feed")
@needs("read", or_ticket=True)
async def feed(
    socket: WebSocket, stream: str, backend: FromBackend, hub: FromHub, gate: FromGate
) -> None:
    """Query: `after` (cursor; without it from now on), `strict`, and the options of a feed."""
    async with _accepted(socket):
        _check_protocol(socket)
        grant = need_of(feed).admit(socket)
        query = parse_one(socket.query_params, stream)
        await _serve(socket, query, backend=backend, hub=hub, gate=gate, grant=grant)


@router.websocket("/v1/feed")
@needs("read", or_ticket=True)
async def feed_of_many(
    socket: WebSocket, backend: FromBackend, hub: FromHub, gate: FromGate
) -> None:
    """Query: `stream`, repeated; `after=STREAM:CURSOR`, repeated; the rest as for one stream."""
    async with _accepted(socket):
        _check_protocol(socket)
        grant = need_of(feed_of_many).admit(socket)
        query = parse_many(socket.query_params, max_streams=backend.feed.max_streams)
        await _serve(
            socket, query, backend=backend, hub=hub, gate=gate, grant=grant, is_single=False
        )


@contextlib.asynccontextmanager
async def _accepted(socket: WebSocket) -> AsyncIterator[None]:
    """A close code reaches a client only through a socket that was accepted: refuse after that."""
    offered = socket.scope.get("subprotocols", [])
    await socket.accept(subprotocol=SUBPROTOCOL if SUBPROTOCOL in offered else None)
    try:
        yield
    except StreamerError as error:
        await _say_goodbye(socket, error.ws_close, error.message)
    except Gone:
        log.debug("feed closed by its client", extra={"path": socket.url.path})


def _check_protocol(socket: WebSocket) -> None:
    """Raises `ProtocolViolation`."""
    offered = socket.scope.get("subprotocols", [])
    if offered and SUBPROTOCOL not in offered:
        raise ProtocolViolation(f"This feed speaks the subprotocol {SUBPROTOCOL} only.")


async def _serve(
    socket: WebSocket,
    query: FeedQuery,
    *,
    backend: Backend,
    hub: Hub,
    gate: Gate,
    grant: Grant,
    is_single: bool = True,
) -> None:
    for stream in query.streams:
        grant.check_stream(stream)
    if backend.draining.is_set():
        await _say_goodbye(socket, _RESTART_CODE, "This gateway is shutting down.")
        return
    with hub.admit(grant.name):
        session = await opened_session(query, backend=backend, hub=hub, can_change=not is_single)
        run = FeedRun(
            session,
            _SocketLine(socket),
            backend=backend,
            hub=hub,
            gate=gate,
            grant=grant,
            is_single=is_single,
        )
        await run.run()
    if session.close is not None:
        await _say_goodbye(socket, session.close.code, session.close.reason)


class _SocketLine:
    """A WebSocket as a `Line`."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def send(self, message: Message) -> None:
        try:
            await self._socket.send_text(message.data.decode())
        except WebSocketDisconnect as error:
            raise Gone from error

    async def receive(self) -> str | bytes:
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise Gone
        text: str | None = message.get("text")
        data: bytes = message.get("bytes") or b""
        return data if text is None else text


async def _say_goodbye(socket: WebSocket, code: int, reason: str) -> None:
    """Close; a socket that is gone or does not take the frame is left to the server."""
    short = reason.encode()[:123].decode(errors="ignore")
    with contextlib.suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
        async with asyncio.timeout(_GOODBYE_S):
            await socket.close(code, short)
