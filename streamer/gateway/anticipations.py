"""Anticipate a caller's own file: upload in, one event per line out while it is worked on."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from streamer.clock import format_utc, wall_ns
from streamer.errors import StreamerError, SubscriberTooSlow
from streamer.events.schema import ErrorMessage
from streamer.events.ulid import Ulids
from streamer.gateway.admission import plan
from streamer.gateway.attended import attended, send_part
from streamer.gateway.backend import Backend, FromBackend
from streamer.gateway.guard import GuardedRoute, needs
from streamer.gateway.spool import Spool
from streamer.gateway.upload_answers import (
    UPLOAD_ANSWERS,
    UPLOAD_BODY,
    shown,
    stem_of,
    uploads_of,
)
from streamer.gateway.upload_body import receive as receive_upload
from streamer.gateway.upload_errors import FileFailed, VideoTooLong
from streamer.gateway.upload_schema import AnticipationOptions, with_fields
from streamer.gateway.uploads import Uploads
from streamer.records import StreamSpec
from streamer.sessions.detached import DetachedLog, DetachedPipeline
from streamer.sessions.ending import Ending
from streamer.sessions.own_thread import in_own_thread
from streamer.sessions.playing import Play, playing
from streamer.sources.file import FileSource

__all__ = ["router"]

router = APIRouter(tags=["files"], route_class=GuardedRoute)
log = logging.getLogger(__name__)

_NDJSON = "application/x-ndjson"
_HEADERS = [
    (b"content-type", _NDJSON.encode()),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would keep lines back
]
_EPOCH = "upload"
_MORE_EVENTS = 64
"""Events that a video may have beyond two per stride: an anticipation, perhaps an episode."""


@router.post(
    "/v1/anticipations",
    summary="Anticipate a file",
    response_class=Response,
    responses={
        200: {"content": {_NDJSON: {"schema": {"type": "string"}}}, "description": "events"},
        **UPLOAD_ANSWERS,
    },
    openapi_extra=UPLOAD_BODY,
)
@needs("write")
async def post_anticipations(
    options: Annotated[AnticipationOptions, Query()], request: Request, backend: FromBackend
) -> Response:
    """Send a video as the body, or as the part `file` of a form. One event per line comes back as
    it is made, the same as on a feed, with `upload:<seq>` as `id`; nothing is kept. What goes
    wrong after the first line is a last line of type `error`. Leaving ends the work."""
    return _Lines(options, backend=backend, uploads=uploads_of(backend))


class _Lines(Response):
    """Reads the upload and writes its events; the file lives as long as this runs."""

    def __init__(self, options: AnticipationOptions, *, backend: Backend, uploads: Uploads) -> None:
        super().__init__(media_type=_NDJSON)
        self._options = options
        self._backend = backend
        self._uploads = uploads
        self._has_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises `StreamerError` as long as nothing was sent."""
        try:
            with self._uploads.place(self._backend.meter, what="anticipations") as spool:
                await self._answer(spool, scope, receive, send)
        except (ClientDisconnect, SubscriberTooSlow) as error:
            log.info("upload given up", extra={"why": str(error) or "the caller left"})
        except StreamerError:
            if not self._has_begun:
                raise  # else it was the last line

    async def _answer(self, spool: Spool, scope: Scope, receive: Receive, send: Send) -> None:
        config = self._uploads.config
        found = await receive_upload(Request(scope, receive), into=spool, config=config)
        options = with_fields(self._options, found.fields)
        spec = await plan(self._backend, options.as_stream())
        name = options.name or stem_of(found.filename)
        source = FileSource(spool.path, name=shown(found.filename), config=self._uploads.files)
        await in_own_thread(source.probe, name="probe-upload")
        if (source.duration_s or 0.0) > config.max_video_s:
            raise VideoTooLong(
                f"The video lasts {source.duration_s:.0f} s; at most {config.max_video_s:g} s are"
                " taken. Cut it."
            )
        async with self._played(name, spec, source) as play:
            self._has_begun = True
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            try:
                most = 2 * int(config.max_video_s / spec.sampling.stride_s) + _MORE_EVENTS
                work = self._tell(play, send, most=most)
                await attended(work, receive=receive, draining=self._backend.draining)
            except SubscriberTooSlow:
                raise
            except StreamerError as error:
                await self._send(_error_line(error), send)
                await self._end(send)
                raise
            await self._end(send)

    @asynccontextmanager
    async def _played(self, name: str, spec: StreamSpec, source: FileSource) -> AsyncIterator[Play]:
        served, log = self._uploads.served(), DetachedLog(epoch=_EPOCH)
        record, _ = await log.create_stream(name, spec)
        pipeline = DetachedPipeline(served, log=log)
        async with playing(
            record,
            store=log,
            pipeline=pipeline,
            model=await served.describe(),
            open_source=lambda _: source,
            owner=_EPOCH,
            config=self._uploads.session,
            taken=pipeline.taken,
        ) as play:
            yield play

    async def _tell(self, play: Play, send: Send, *, most: int) -> None:
        """Raises `SubscriberTooSlow`, `VideoTooLong`, and `StreamerError` when the file failed."""
        count, last = 0, b"{}"
        async for event in play.events:
            await self._send(event, send)
            count, last = count + 1, event
            if count > most:
                raise VideoTooLong(
                    f"The video lasts longer than the {self._uploads.config.max_video_s:g} s that"
                    " are taken. Cut it."
                )
        if _ended_well(play):
            return
        state = json.loads(last)
        raise FileFailed(
            state.get("detail") or "The file could not be read to its end.",
            state.get("reason") or "internal",
        )

    async def _send(self, line: bytes, send: Send) -> None:
        await send_part(line + b"\n", send, patience_s=self._uploads.config.stall_s)

    async def _end(self, send: Send) -> None:
        await send_part(b"", send, patience_s=self._uploads.config.stall_s, is_last=True)


def _error_line(error: StreamerError) -> bytes:
    line = ErrorMessage(
        id=Ulids().next(),
        time=format_utc(wall_ns()),
        code=error.reason if isinstance(error, FileFailed) else error.code,
        message=error.message,
        retryable=error.retryable,
    )
    return line.model_dump_json().encode()


def _ended_well(play: Play) -> bool:
    try:
        return play.session.result() is Ending.ENDED
    except Exception:
        # The answer is under way, so no status can tell it any more: the caller gets a last line
        # of type `error`, the log the trace.
        log.exception("upload failed")
        return False
