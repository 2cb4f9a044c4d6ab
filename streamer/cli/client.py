"""A small client of the REST API and the feed, as the commands need it. Blocking, one thread."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import httpx2
from pydantic import ValidationError

from streamer.errors import ConfigError, NotFound, StreamerError, Unauthorized
from streamer.gateway.auth import is_loopback
from streamer.gateway.schema import StreamPage, StreamView

__all__ = ["Client", "ServerRefused", "ServerUnreachable", "bearer", "check_server", "is_here"]

_TIMEOUT_S = 15.0
_PAGE = 200
_SERVER_URL = re.compile(r"https?://[^\s/?#]+(?:/[^\s?#]*)?")


class ServerUnreachable(StreamerError):
    """Nobody answers there, or it is not streamer that does."""

    code = "unreachable"
    retryable = True


class ServerRefused(StreamerError):
    """The server answered, and the answer is no; the message is its own."""

    code = "refused"


class Client:
    """One server. Use as a context manager.

    Args:
        server: its URL, like ``http://127.0.0.1:8000``.
        token: access token, where the server asks for one.
        transport: for tests.

    Raises:
        ConfigError: `server` is not an http URL.
    """

    def __init__(
        self,
        server: str,
        *,
        token: str | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.server = check_server(server)
        self._http = httpx2.Client(
            base_url=self.server,
            headers=bearer(token),
            timeout=_TIMEOUT_S,
            transport=transport,
            trust_env=not is_here(self.server),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def create_stream(self, body: dict[str, Any]) -> StreamView:
        """`body` is what `POST /v1/streams` takes. Every method raises as `_send` does."""
        return self._stream(self._send("POST", "/v1/streams", body=body))

    def streams(self) -> Iterator[StreamView]:
        """All streams, page by page."""
        after: str | None = ""
        while after is not None:
            answer = self._send("GET", "/v1/streams", query={"after": after, "limit": str(_PAGE)})
            with self._reading():
                page = StreamPage.model_validate_json(answer.content)
            yield from page.streams
            after = page.next_after

    def stream(self, stream: str) -> StreamView:
        return self._stream(self._send("GET", _path(stream)))

    def set_state(self, stream: str, state: Literal["live", "paused"]) -> StreamView:
        return self.change_stream(stream, {"state": state})

    def change_stream(self, stream: str, body: dict[str, Any]) -> StreamView:
        """`body` is what `PATCH /v1/streams/{stream}` takes."""
        return self._stream(self._send("PATCH", _path(stream), body=body))

    def delete_stream(self, stream: str) -> None:
        self._send("DELETE", _path(stream))

    def snapshot(self, stream: str, *, at: str | None = None) -> tuple[bytes, str]:
        """A JPEG and the time it was captured."""
        query = None if at is None else {"at": at}
        return _picture(self._send("GET", f"{_path(stream)}/snapshot.jpg", query=query))

    def latent(self, stream: str, *, at: str | None = None) -> tuple[bytes, str]:
        """A PNG of what was seen and of all horizons, and when it was captured and of what its
        panels are."""
        query = {"strip": "true"} | ({} if at is None else {"at": at})
        answer = self._send("GET", f"{_path(stream)}/latent.png", query=query)
        content, captured = _picture(answer)
        panels = answer.headers.get("X-Horizons", "")
        return content, f"{captured}, panels from left to right: {panels} s ahead"

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: dict[str, Any] | None = None,
        query: dict[str, str] | None = None,
    ) -> httpx2.Response:
        """Raises `ServerUnreachable`, or what the server's problem document says."""
        try:
            answer = self._http.request(method, path, json=body, params=query)
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error
        if answer.is_error:
            raise self._refusal(answer)
        return answer

    def _unreachable(self, error: httpx2.TransportError) -> ServerUnreachable:
        why = str(error) or type(error).__name__
        if "WRONG_VERSION_NUMBER" in why or "record layer" in why.lower():
            plain = self.server.replace("https://", "http://", 1)
            return ServerUnreachable(f"{self.server} speaks no TLS; write {plain}")
        if "CERTIFICATE" in why or "certificate" in why:
            return ServerUnreachable(f"The certificate of {self.server} is not trusted ({why}).")
        return ServerUnreachable(
            f"No answer from {self.server} ({why}). Start a server with: streamer serve"
        )

    def _refusal(self, answer: httpx2.Response) -> StreamerError:
        problem: Any = {}
        with contextlib.suppress(ValueError):
            problem = answer.json()
        if not isinstance(problem, dict) or "detail" not in problem or "code" not in problem:
            return self._stranger(f"status {answer.status_code}")
        detail = str(problem["detail"])
        if answer.status_code == 404:
            return NotFound(detail)
        if answer.status_code == 401:
            return Unauthorized(f"{detail} Here: --token, or the variable STREAMER_TOKEN.")
        if answer.status_code in (400, 422):
            return ConfigError(detail)
        return ServerRefused(detail)

    def _stream(self, answer: httpx2.Response) -> StreamView:
        with self._reading():
            return StreamView.model_validate_json(answer.content)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except ValidationError as error:
            raise self._stranger("an answer we cannot read") from error

    def _stranger(self, what: str) -> ServerUnreachable:
        return ServerUnreachable(
            f"{self.server} gave {what}; it is no streamer server of this version."
        )


def bearer(token: str | None) -> dict[str, str]:
    """The header that carries an access token; nothing for none.

    Raises:
        ConfigError: it cannot be one.
    """
    if not token:
        return {}
    if not re.fullmatch(r"[!-~]+", token):
        raise ConfigError("--token has characters that no token has.")
    return {"Authorization": f"Bearer {token}"}


def check_server(url: str) -> str:
    """The server's URL without a slash at its end.

    Raises:
        ConfigError: not an http or https URL.
    """
    if not _SERVER_URL.fullmatch(url) or not _has_place(url):
        raise ConfigError(f"--server is {url!r}; write it like http://127.0.0.1:8000.")
    return url.rstrip("/")


def _has_place(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, or a port that is none
        return False


def is_here(server: str) -> bool:
    """Whether a server is on this machine, before which no proxy of the environment stands."""
    return is_loopback(urlsplit(server).hostname or "")


def _picture(answer: httpx2.Response) -> tuple[bytes, str]:
    return answer.content, answer.headers.get("X-Capture-Time", "")


def _path(stream: str) -> str:
    """Ids need no quoting; what is none must not become another path."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", stream):
        raise NotFound(f"There is no stream {stream!r}; ids are letters, digits, dots and dashes.")
    return f"/v1/streams/{stream}"
