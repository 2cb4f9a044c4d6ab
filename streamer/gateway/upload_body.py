"""A request's body -> a file and options: raw, or `multipart/form-data` with a part `file`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import Request

from streamer.gateway.problems import refused_field
from streamer.gateway.spool import Spool
from streamer.gateway.upload_config import UploadConfig
from streamer.gateway.upload_errors import UploadStalled

__all__ = ["Received", "receive"]

_MULTIPART = "multipart/form-data"
_RAW = frozenset({"application/octet-stream", "application/vnd.safetensors", "application/mp4"})
_MAX_FIELDS = 32
_MAX_NAME = 80
_MAX_FIELD_BYTES = 64 * 1024
_HOW = (
    "Send the file itself with Content-Type: video/mp4 (or another video type, or"
    " application/octet-stream), or a form with the part 'file'."
)


@dataclass(slots=True, kw_only=True)
class Received:
    """What came beside the file."""

    filename: str = ""
    """As the caller gave it; for display only, never a path."""
    fields: dict[str, str] = field(default_factory=dict)
    """Other parts of the form."""


async def receive(request: Request, *, into: Spool, config: UploadConfig) -> Received:
    """Read the whole body. Cancellation: close after.

    Raises:
        UploadStalled: the sender is too slow.
        NoRoomOnDisk: the file does not fit.
        HTTPException: 413 too large, 415 neither of the two forms.
        RequestValidationError: a form that cannot be used.
        ClientDisconnect: the caller left.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    found = Received()
    chunks = _patient(request, config)
    if kind == _MULTIPART.encode():
        await _form(chunks, options.get(b"boundary", b""), into=into, found=found, config=config)
    elif kind.startswith(b"video/") or kind.decode("latin-1") in _RAW:
        async for chunk in chunks:
            await _keep(chunk, into=into, config=config)
    else:
        raise HTTPException(415, _HOW)
    await into.flush()
    return found


async def _patient(request: Request, config: UploadConfig) -> AsyncIterator[bytes]:
    """The body's chunks, as long as they come fast enough."""
    loop = asyncio.get_running_loop()
    began, received = loop.time(), 0
    chunks = request.stream()
    while True:
        behind = began + received / config.min_bytes_per_s
        try:
            async with asyncio.timeout_at(min(loop.time(), behind) + config.stall_s):
                chunk = await anext(chunks, None)
        except TimeoutError:
            raise UploadStalled(
                f"The upload stopped, or fell behind {config.min_bytes_per_s:g} bytes per second,"
                f" for {config.stall_s:g} s. Send it again."
            ) from None
        if chunk is None:
            return
        received += len(chunk)
        yield chunk


async def _keep(data: bytes, *, into: Spool, config: UploadConfig) -> None:
    if into.size + len(data) > config.max_bytes:
        raise HTTPException(413, f"A file may have {config.max_bytes} bytes; this one has more.")
    await into.write(data)


async def _form(
    chunks: AsyncIterator[bytes],
    boundary: bytes,
    *,
    into: Spool,
    found: Received,
    config: UploadConfig,
) -> None:
    form = _Form()
    try:
        parser = MultipartParser(boundary, form.callbacks())
        async for chunk in chunks:
            parser.write(chunk)
            await _keep(form.take(), into=into, config=config)
        parser.finalize()
    except (FormParserError, ValueError) as error:
        raise refused_field("body", f"this is no readable form ({error})") from error
    if not form.has_ended:
        raise refused_field("body", "this form breaks off before its end")
    if form.filename is None:
        raise refused_field("file", "this part of the form is missing")
    found.filename, found.fields = form.filename, form.fields()


class _Form:
    """What the parser finds, one part after the other."""

    def __init__(self) -> None:
        self.filename: str | None = None
        """Of the part `file`; None before it."""
        self.has_ended = False
        self._file = bytearray()
        self._texts: dict[str, bytearray] = {}
        self._header = (bytearray(), bytearray())
        self._disposition = b""
        self._name = ""
        self._into: bytearray | None = None

    def callbacks(self) -> Any:
        return {
            "on_part_begin": self._on_part_begin,
            "on_header_field": self._on_header_field,
            "on_header_value": self._on_header_value,
            "on_header_end": self._on_header_end,
            "on_headers_finished": self._on_headers_finished,
            "on_part_data": self._on_part_data,
            "on_end": self._on_end,
        }

    def take(self) -> bytes:
        """What came of the file since the last call."""
        data = bytes(self._file)
        self._file.clear()
        return data

    def fields(self) -> dict[str, str]:
        try:
            return {name: value.decode() for name, value in self._texts.items()}
        except UnicodeDecodeError as error:
            raise refused_field("body", "a field of this form is not UTF-8") from error

    def _on_part_begin(self) -> None:
        self._disposition = b""
        self._header = (bytearray(), bytearray())

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header[0].extend(data[start:end])

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1].extend(data[start:end])

    def _on_header_end(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = bytes(value)
        self._header = (bytearray(), bytearray())

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = options.get(b"name", b"").decode(errors="replace")
        if name == "file":
            if self.filename is not None:
                raise refused_field("file", "send one file at a time")
            self.filename = options.get(b"filename", b"").decode(errors="replace")
            self._into = self._file
            return
        name = name[:_MAX_NAME]
        if b"filename" in options:
            raise refused_field("file", _no_part(name))
        if name in self._texts or len(self._texts) >= _MAX_FIELDS:
            raise refused_field("body", "a field stands twice in this form, or it has too many")
        self._into = self._texts[name] = bytearray()
        self._name = name

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        assert self._into is not None, "data comes after its headers"
        self._into.extend(data[start:end])
        if self._into is not self._file and len(self._into) > _MAX_FIELD_BYTES:
            raise refused_field("body", _too_long(self._name))

    def _on_end(self) -> None:
        self.has_ended = True


def _no_part(name: str) -> str:
    return f"There is no part {name!r} here; name the file's part 'file'."


def _too_long(name: str) -> str:
    return (
        f"The part {name!r} has more than {_MAX_FIELD_BYTES} bytes, which only the file's may:"
        " name that part 'file'."
    )
