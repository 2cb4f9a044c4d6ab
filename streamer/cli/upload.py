"""Files sent to a server to be worked on: what `anticipate --server` and `encode --server` do."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import httpx2

from streamer.cli.client import Client, ServerUnreachable

__all__ = ["Uploader"]

# Of a large model on a CPU one clip takes a minute; a server that died is noticed at once.
_TIMEOUT = httpx2.Timeout(15.0, read=600.0)
_HEADERS = {"Content-Type": "application/octet-stream"}


class Uploader(Client):
    """A `Client` for `POST /v1/anticipations` and `/v1/latents`.

    Every method raises what the server's problem document says, `ServerUnreachable` when nobody
    answers or the answer breaks off, and `OSError` when the file cannot be read.
    """

    def anticipations(self, path: Path, *, query: Mapping[str, Any]) -> Generator[bytes]:
        """The events of a file, as they come: JSON, one each. Leaving early ends the work there."""
        with self._asked("/v1/anticipations", path, query=query) as answer:
            last = rest = b""
            for part in answer.iter_bytes():
                *lines, rest = (rest + part).split(b"\n")
                last = lines[-1] if lines else last
                yield from lines
        if not _is_end(last):
            raise ServerUnreachable(f"{self.server} broke off before the end of {path.name}.")

    def latents(self, path: Path, *, query: Mapping[str, Any]) -> bytes:
        """The content of a safetensors file."""
        with self._asked("/v1/latents", path, query=query) as answer:
            content: bytes = answer.read()
            return content

    @contextlib.contextmanager
    def _asked(
        self, url: str, path: Path, *, query: Mapping[str, Any]
    ) -> Iterator[httpx2.Response]:
        given = {name: value for name, value in query.items() if value is not None}
        with path.open("rb") as file, self._reaching():
            request = self._http.build_request(
                "POST", url, params=given, headers=_HEADERS, content=_pieces(file), timeout=_TIMEOUT
            )
            # A length lets the server refuse at once what is too large.
            request.headers["Content-Length"] = str(path.stat().st_size)
            request.headers.pop("Transfer-Encoding", None)
            answer = self._http.send(request, stream=True)
            try:
                if answer.is_error:
                    answer.read()
                    raise self._refusal(answer)
                yield answer
            finally:
                answer.close()

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except httpx2.TransportError as error:
            if isinstance(error, httpx2.ConnectError):
                raise self._unreachable(error) from error
            why = str(error) or type(error).__name__
            raise ServerUnreachable(f"{self.server} does not answer, or broke off ({why}).") from (
                error
            )


def _is_end(line: bytes) -> bool:
    event: dict[str, Any] = json.loads(line or b"{}")
    return event.get("type") == "error" or event.get("state") == "ended"


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(1024 * 1024):
        yield piece
