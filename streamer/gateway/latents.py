"""Latents of a caller's own clip, or a masked prediction inside it, as a safetensors file."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from streamer.errors import ConfigError, SubscriberTooSlow
from streamer.gateway.admission import check_within
from streamer.gateway.attended import attended, send_part
from streamer.gateway.backend import Backend, FromBackend
from streamer.gateway.guard import GuardedRoute, needs
from streamer.gateway.presence import choose_model
from streamer.gateway.spool import Spool
from streamer.gateway.upload_answers import UPLOAD_ANSWERS, UPLOAD_BODY, shown, uploads_of
from streamer.gateway.upload_body import Received
from streamer.gateway.upload_body import receive as receive_upload
from streamer.gateway.upload_clip import clip_of
from streamer.gateway.upload_errors import VideoTooLong
from streamer.gateway.upload_schema import LatentOptions, with_fields
from streamer.gateway.uploads import Uploads
from streamer.latents.token_ids import parse_ids
from streamer.records import Clip, ModelInfo
from streamer.sessions.own_thread import in_own_thread

__all__ = ["router"]

router = APIRouter(tags=["files"], route_class=GuardedRoute)
log = logging.getLogger(__name__)

_OCTETS = "application/octet-stream"
_PIECE = 1024 * 1024
_FLOAT_BYTES = 4


@router.post(
    "/v1/latents",
    summary="Encode a clip",
    response_class=Response,
    responses={
        200: {
            "content": {_OCTETS: {"schema": {"type": "string", "format": "binary"}}},
            "description": "a safetensors file",
        },
        **UPLOAD_ANSWERS,
    },
    openapi_extra=UPLOAD_BODY,
)
@needs("write")
async def post_latents(
    options: Annotated[LatentOptions, Query()], request: Request, backend: FromBackend
) -> Response:
    """Send a video, or a safetensors file with `frames` (U8 `[T, crop, crop, 3]`, RGB), as the body
    or as the part `file` of a form. Back comes `latents` `[N, D]`, raw; or, with `target_ids`,
    `prediction` `[M, D]`, layer-normed, and the raw `context` `[K, D]` it was made from. Metadata:
    model, fingerprint, trained, dtype, normed, grid, start_s, fps, first_frame, last_frame."""
    return _TensorFile(options, backend=backend, uploads=uploads_of(backend))


class _TensorFile(Response):
    """Reads the upload, computes, and writes the answer in pieces."""

    def __init__(self, options: LatentOptions, *, backend: Backend, uploads: Uploads) -> None:
        super().__init__(media_type=_OCTETS)
        self._options = options
        self._backend = backend
        self._uploads = uploads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises `StreamerError` as long as nothing was sent."""
        try:
            with self._uploads.place(self._backend.meter, what="latents") as spool:
                request = Request(scope, receive)
                found = await receive_upload(request, into=spool, config=self._uploads.config)
                content = await attended(
                    self._computed(spool, found), receive=receive, draining=self._backend.draining
                )
                await self._send(content, send)
        except (ClientDisconnect, SubscriberTooSlow) as error:
            log.info("upload given up", extra={"why": str(error) or "the caller left"})

    async def _computed(self, spool: Spool, found: Received) -> bytes:
        options = with_fields(self._options, found.fields)
        seen, wanted = (
            _ids(options.context_ids, "context_ids"),
            _ids(options.target_ids, "target_ids"),
        )
        if seen is not None and wanted is None:
            raise ConfigError("context_ids without target_ids: say what is to be predicted.")
        if options.fps is not None:
            bounds = self._backend.config
            check_within("fps", options.fps, bounds.min_fps, bounds.max_fps)
        if options.start_s > self._uploads.config.max_video_s:
            raise VideoTooLong(
                f"start_s is {options.start_s:g}; at most the first"
                f" {self._uploads.config.max_video_s:g} s of a video are read."
            )
        await choose_model(self._backend.store, "")  # a call without a replica would wait for one
        served = self._uploads.served()
        model = await served.describe()
        clip = await self._clip(spool, options, name=shown(found.filename), model=model)
        _check_size(clip, wanted, model=model, most=self._uploads.config.max_latent_bytes)
        return await served.latents(
            clip, context_ids=seen, target_ids=wanted, start_s=options.start_s
        )

    async def _clip(
        self, spool: Spool, options: LatentOptions, *, name: str, model: ModelInfo
    ) -> Clip:
        stop = threading.Event()
        try:
            return await in_own_thread(
                lambda: clip_of(
                    spool,
                    options,
                    name=name,
                    fps=self._backend.defaults.sampling.fps,
                    model=model,
                    files=self._uploads.files,
                    stop=stop,
                ),
                name="decode-upload",
            )
        finally:
            stop.set()

    async def _send(self, content: bytes, send: Send) -> None:
        patience_s = self._uploads.config.stall_s
        headers = [
            (b"content-type", _OCTETS.encode()),
            (b"content-length", str(len(content)).encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        view = memoryview(content)
        for begin in range(0, len(view), _PIECE):
            await send_part(bytes(view[begin : begin + _PIECE]), send, patience_s=patience_s)
        await send_part(b"", send, patience_s=patience_s, is_last=True)


def _ids(text: str | None, option: str) -> list[int] | None:
    return None if text is None else parse_ids(text, option=option)


def _check_size(clip: Clip, wanted: Sequence[int] | None, *, model: ModelInfo, most: int) -> None:
    """Before the work: a clip's tokens, or at most as many of the context and the targets."""
    side = model.crop // model.patch
    tokens = len(clip.frames) // model.tubelet * side**2 + len(wanted or ())
    size = tokens * int(model.config.get("hidden_size", 0)) * _FLOAT_BYTES
    if size > most:
        raise ConfigError(
            f"The answer would have {size} bytes; at most {most} are given. Ask for fewer frames."
        )
