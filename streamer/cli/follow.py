"""Following a feed: reconnects by itself and goes on after the last event seen."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.frames import CloseCode
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from streamer.backoff import Backoff, delays
from streamer.cli.client import ServerRefused, ServerUnreachable, bearer, is_here
from streamer.errors import Forbidden, NotFound, ResumeGone, StreamerError, Unauthorized

__all__ = ["FeedMessage", "Follower", "feed_url"]

RETRY = Backoff(first_s=0.5, cap_s=10.0, max_tries=30)
ABSENT = Backoff(first_s=1.0, factor=1.0, cap_s=2.0, max_tries=11)
"""For a stream that was there before the connection was lost: a server that starts again may
answer a moment before it knows its streams."""
_RETRY_CODES = frozenset({1001, 1006, 1011, 1012, 1013, 4408, 4500})
_SUBPROTOCOL = Subprotocol("streamer.v1")
_ERRORS: dict[int, type[StreamerError]] = {
    4401: Unauthorized,
    4403: Forbidden,
    4404: NotFound,
    4410: ResumeGone,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedMessage:
    """One message of the server."""

    text: str
    fields: dict[str, Any]
    """The same, parsed."""

    @property
    def type(self) -> str:
        return str(self.fields.get("type", ""))


def feed_url(server: str, stream: str, *, after: str | None) -> str:
    """``http://host/`` and a stream -> ``ws://host/v1/streams/.../feed?after=...``."""
    query = "" if after is None else f"?{urlencode({'after': after})}"
    return f"ws{server.removeprefix('http')}/v1/streams/{stream}/feed{query}"


class Follower:
    """One subscription that survives its connections.

    Args:
        server: http URL of the server.
        stream: what to follow.
        after: cursor to go on after; None: from now on.
        token: access token, where the server asks for one.
        notice: gets a sentence when the connection is lost.
        retry: how to come back after a connection was lost; the first one is not retried.
        absent: how to wait for the stream when a server that came back does not know it.
    """

    def __init__(
        self,
        server: str,
        stream: str,
        *,
        after: str | None = None,
        token: str | None = None,
        notice: Callable[[str], None],
        retry: Backoff = RETRY,
        absent: Backoff = ABSENT,
    ) -> None:
        self.cursor = after
        """`id` of the last event given out; go on after it."""
        self._server = server
        self._stream = stream
        self._headers = bearer(token)
        self._notice = notice
        self._retry = retry
        self._last_seq = 0
        self._was_open = False
        self._has_heard = False
        self._delays = delays(retry)
        self._absent = absent
        self._absences = delays(absent)

    def messages(self) -> Iterator[FeedMessage]:
        """Every message once, in order; ends when the server closes with 1000.

        Raises:
            NotFound: no such stream.
            ServerUnreachable: nobody answers at first, or again for too long.
            ServerRefused: the server closed for good; the message is its own.
        """
        while True:
            try:
                with self._open() as socket:
                    yield from self._receive(socket)
            except ConnectionClosed as error:
                if error.rcvd is not None and error.rcvd.code == CloseCode.NORMAL_CLOSURE:
                    return
                self._pause_after(error)
            except InvalidStatus as error:
                if error.response.status_code < 500:
                    status = error.response.status_code
                    raise ServerRefused(f"{self._server} refused the feed ({status}).") from error
                self._pause(f"status {error.response.status_code}")
            except (OSError, InvalidHandshake) as error:
                if not self._was_open:
                    raise self._unreachable(str(error)) from error
                self._pause(str(error) or type(error).__name__)

    def _open(self) -> ClientConnection:
        url = feed_url(self._server, self._stream, after=self.cursor)
        return connect(
            url,
            additional_headers=self._headers,
            subprotocols=[_SUBPROTOCOL],
            proxy=None if is_here(self._server) else True,
            max_size=2**22,
            close_timeout=1.0,
        )

    def _receive(self, socket: ClientConnection) -> Iterator[FeedMessage]:
        self._has_heard = False
        while True:
            data = socket.recv()
            self._was_open = self._has_heard = True
            text = data if isinstance(data, str) else data.decode()
            message = FeedMessage(text=text, fields=json.loads(text))
            if self._is_new(message):
                self._delays, self._absences = delays(self._retry), delays(self._absent)
                yield message

    def _is_new(self, message: FeedMessage) -> bool:
        """Delivery is at least once: a seq seen already is dropped."""
        if message.type == "session.created" and self.cursor is None:
            head = message.fields["streams"][0]
            self.cursor, self._last_seq = f"{head['epoch']}:{head['head_seq']}", head["head_seq"]
        elif message.type == "gap" and message.fields["reason"] == "restart":
            self._last_seq = message.fields["to_seq"]
        seq = message.fields.get("seq")
        if seq is None:
            return True
        if seq <= self._last_seq:
            return False
        self._last_seq, self.cursor = seq, message.fields["id"]
        return True

    def _pause_after(self, error: ConnectionClosed) -> None:
        """Wait before the next try, if the close is worth one. Raises what it means if not."""
        try:
            why = _why(error)
        except NotFound as missing:
            delay_s = next(self._absences, None)
            if self._has_heard or not self._was_open or delay_s is None:
                raise
            self._wait(missing.message, delay_s)
        else:
            self._pause(why)

    def _pause(self, why: str) -> None:
        delay_s = next(self._delays, None)
        if delay_s is None:
            raise self._unreachable(why)
        self._wait(why, delay_s)

    def _wait(self, why: str, delay_s: float) -> None:
        self._notice(
            f"connection to {self._server} lost ({why}); trying again in {delay_s:.1f} s"
            f" after {self.cursor or 'now'}"
        )
        threading.Event().wait(delay_s)

    def _unreachable(self, why: str) -> ServerUnreachable:
        return ServerUnreachable(
            f"No answer from {self._server} ({why}). Start a server with: streamer serve"
        )


def _why(error: ConnectionClosed) -> str:
    """One sentence for a close that is worth another try.

    Raises:
        StreamerError: the close is final.
    """
    code = error.rcvd.code if error.rcvd else int(CloseCode.ABNORMAL_CLOSURE)
    reason = error.rcvd.reason if error.rcvd else ""
    if code in _RETRY_CODES:
        return f"{code} {reason}".strip()
    raise _ERRORS.get(code, ServerRefused)(reason or f"The feed was closed with {code}.") from error
