"""The WebSocket feed: the async skin over `streamer.events.session.FeedSession`.

Three tasks per socket: a reader (without one a server does not learn that its client left), a
writer, and a follower of the log. Whatever ends one of them ends the feed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping

from fastapi import APIRouter, WebSocket
from starlette.exceptions import HTTPException
from starlette.websockets import WebSocketDisconnect

from streamer.clock import monotonic_ns
from streamer.errors import ProtocolViolation, StreamerError, SubscriberTooSlow
from streamer.events.cursor import Cursor, parse_cursor
from streamer.events.session import FeedSession
from streamer.gateway.backend import Backend, FromBackend
from streamer.gateway.guard import GuardedRoute, need_of, needs
from streamer.gateway.hub import FromHub, Hub
from streamer.gateway.tail import Tail

__all__ = ["SUBPROTOCOL", "router"]

router = APIRouter(tags=["feed"], route_class=GuardedRoute)
log = logging.getLogger(__name__)

SUBPROTOCOL = "streamer.v1"
_QUERY = frozenset({"after", "strict", "ticket"})
_BOOLS = {"true": True, "1": True, "": True, "false": False, "0": False}
_RESTART_CODE = 1012
_RETRY_S = 1.0
_NAP_S = 1.0
_GOODBYE_S = 2.0
"""How long a close frame may take to leave; a socket that does not take it is dropped."""


@router.get("/v1/streams/{stream}/feed", status_code=426, include_in_schema=False)
@needs("read", or_ticket=True)
async def not_a_socket(stream: str) -> None:
    raise HTTPException(426, f"{stream}/feed is a WebSocket.", headers={"Upgrade": "websocket"})


@router.websocket("/v1/streams/{stream}/feed")
@needs("read", or_ticket=True)
async def feed(socket: WebSocket, stream: str, backend: FromBackend, hub: FromHub) -> None:
    """Query: `after` (cursor; without it from now on) and `strict`."""
    offered = socket.scope.get("subprotocols", [])
    await socket.accept(subprotocol=SUBPROTOCOL if SUBPROTOCOL in offered else None)
    try:
        if offered and SUBPROTOCOL not in offered:
            raise ProtocolViolation(f"This feed speaks the subprotocol {SUBPROTOCOL} only.")
        await _serve(socket, stream, backend=backend, hub=hub)
    except StreamerError as error:
        await _say_goodbye(socket, error.ws_close, error.message)
    except WebSocketDisconnect:
        log.debug("feed closed by its client", extra={"stream": stream})


async def _serve(socket: WebSocket, stream: str, *, backend: Backend, hub: Hub) -> None:
    need_of(feed).admit(socket).check_stream(stream)
    after, is_strict = _parse_query(socket.query_params)
    if backend.draining.is_set():
        await _say_goodbye(socket, _RESTART_CODE, "This gateway is shutting down.")
        return
    with hub.subscribe(stream) as tail:
        session = FeedSession(config=backend.feed, renderer=hub.renderer)
        cursors = {} if after is None else {stream: after}
        logs = {stream: await tail.now()}
        session.open(logs, after=cursors, strict=is_strict, now_ns=monotonic_ns())
        skin = _Skin(socket, session, stream=stream, tail=tail, draining=backend.draining)
        await skin.run(grace_s=backend.feed.slow_grace_s)
    if session.close is not None:
        await _say_goodbye(socket, session.close.code, session.close.reason)


def _parse_query(query: Mapping[str, str]) -> tuple[Cursor | None, bool]:
    unknown = sorted(query.keys() - _QUERY)
    if unknown:
        raise ProtocolViolation(f"The feed takes after and strict, not {unknown[0][:40]!r}.")
    is_strict = _BOOLS.get(query.get("strict", "false").lower())
    if is_strict is None:
        raise ProtocolViolation("strict is true or false.")
    return (parse_cursor(query["after"]) if "after" in query else None), is_strict


class _Skin:
    """One socket's tasks around its session."""

    def __init__(
        self,
        socket: WebSocket,
        session: FeedSession,
        *,
        stream: str,
        tail: Tail,
        draining: asyncio.Event,
    ) -> None:
        self._socket = socket
        self._session = session
        self._stream = stream
        self._tail = tail
        self._draining = draining
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._sending: asyncio.Timeout | None = None

    async def run(self, *, grace_s: float) -> None:
        """Until the client left or the session closed. Close after.

        Raises:
            StreamerError: the feed cannot go on; the class has the close code.
        """
        try:
            async with asyncio.TaskGroup() as group:
                ending = {
                    group.create_task(self._listen()),
                    group.create_task(self._write(grace_s)),
                }
                others = {group.create_task(self._follow()), group.create_task(self._drain())}
                await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
                for task in ending | others:
                    task.cancel()
        except ExceptionGroup as group_error:
            known, bugs = group_error.split((StreamerError, WebSocketDisconnect))
            if bugs is not None or known is None:
                raise
            raise known.exceptions[0] from None

    async def _listen(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1005))
            text = message.get("text")
            if text is None:
                self._session.receive_binary()
            else:
                self._session.receive_text(text, now_ns=monotonic_ns())
            self._notice()

    async def _follow(self) -> None:
        while self._session.close is None:
            read = self._session.wanted(self._stream)
            if read is None:
                await _until(self._room, timeout_s=_NAP_S)
            else:
                found = await self._tail.after(read)
                if found is not None:
                    self._session.receive_log(read, found, now_ns=monotonic_ns())
            self._session.tick(now_ns=monotonic_ns())
            self._notice()

    async def _write(self, grace_s: float) -> None:
        while True:
            message = self._session.next_message(now_ns=monotonic_ns())
            if message is not None:
                await self._send(message.data.decode(), grace_s=grace_s)
                self._room.set()
            elif self._session.close is not None:
                return
            else:
                left_s = self._session.silence_left_s(now_ns=monotonic_ns())
                await _until(self._changed, timeout_s=left_s)

    async def _drain(self) -> None:
        await self._draining.wait()
        self._session.drain(reason="This gateway is shutting down.", retry_after_s=_RETRY_S)
        self._notice()

    async def _send(self, text: str, *, grace_s: float) -> None:
        try:
            async with asyncio.timeout(grace_s) as self._sending:
                await self._socket.send_text(text)
        except TimeoutError:
            raise SubscriberTooSlow("The subscriber did not read for too long.") from None
        finally:
            self._sending = None

    def _notice(self) -> None:
        """The session may have something to say; one that gave up on its subscriber must not wait
        for a send that will never end."""
        self._changed.set()
        close = self._session.close
        if close is not None and self._sending is not None:
            is_slow = isinstance(close.error, SubscriberTooSlow)
            left_s = 0.0 if is_slow else _GOODBYE_S
            deadline = asyncio.get_running_loop().time() + left_s
            self._sending.reschedule(min(self._sending.when() or deadline, deadline))


async def _until(event: asyncio.Event, *, timeout_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    event.clear()


async def _say_goodbye(socket: WebSocket, code: int, reason: str) -> None:
    """Close; a socket that is gone or does not take the frame is left to the server."""
    short = reason.encode()[:123].decode(errors="ignore")
    with contextlib.suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
        async with asyncio.timeout(_GOODBYE_S):
            await socket.close(code, short)
