"""What the model sees and what it makes of it, as pictures: the only ones the store has.

They are written once a stride with a TTL. A picture is found by capture time: `at` is the
`capture_time` of an event, and the answer is the newest picture of then or before.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from email.utils import formatdate
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from streamer.clock import format_utc, parse_utc
from streamer.errors import ConfigError, NotFound
from streamer.events.panels import Panels, unpack_panels
from streamer.gateway.backend import FromBackend
from streamer.gateway.guard import GuardedRoute, needs
from streamer.gateway.png import encode_strip
from streamer.gateway.problems import Problem
from streamer.gateway.streams import StreamPath
from streamer.store.protocol import PictureKind, Store, StoredPicture

__all__ = ["LatentQuery", "SnapshotQuery", "router"]

router = APIRouter(prefix="/v1/streams", tags=["pictures"], route_class=GuardedRoute)

_SHOWN_PIXELS = 256
"""A panel is drawn about as large as a frame, unless the request says otherwise."""
_MAX_PIXELS = 4_000_000
"""Of one answer."""
_JPEG, _PNG = "image/jpeg", "image/png"
IfNoneMatch = Annotated[str | None, Header(max_length=1024)]
At = Annotated[
    str | None,
    Field(
        max_length=40,
        description="RFC 3339: the newest picture captured then or before, within what is kept",
        examples=["2026-12-01T09:00:03.412345Z"],
    ),
]


class SnapshotQuery(BaseModel):
    """Which frame."""

    model_config = ConfigDict(extra="forbid")

    at: At = None


class LatentQuery(BaseModel):
    """Which panels, and how large."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    at: At = None
    horizon_s: float = Field(
        default=0.0,
        ge=0,
        description="a horizon of the stream; 0 is the newest tubelet that was seen",
        examples=[0.5],
    )
    strip: bool = Field(default=False, description="all panels side by side, the observed one left")
    scale: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="pixels per side of a token; without it a panel is about 256 pixels high",
    )


def _answers(media_type: str) -> dict[int | str, dict[str, Any]]:
    return {
        200: {"content": {media_type: {"schema": {"type": "string", "format": "binary"}}}},
        304: {"description": "still the picture that If-None-Match names"},
        400: {"model": Problem, "description": "`at` is no time, or `scale` too large"},
        404: {"model": Problem, "description": "no such stream, or no such picture of it"},
    }


@router.get(
    "/{stream}/snapshot.jpg",
    summary="See the newest frame",
    response_class=Response,
    responses=_answers(_JPEG),
)
@needs("read")
async def get_snapshot(
    stream: StreamPath,
    query: Annotated[SnapshotQuery, Query()],
    backend: FromBackend,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """What the model saw last: the cropped frame that the newest clip ended with. At most 32 kB.
    The capture time is in `X-Capture-Time`."""
    picture = await _picture(backend.store, stream, "snapshot", at=query.at)
    headers = _headers(picture, variant="")
    if _is_known(headers["ETag"], if_none_match):
        return Response(status_code=304, headers=headers)
    return Response(picture.body, media_type=picture.media_type, headers=headers)


@router.get(
    "/{stream}/latent.png",
    summary="See a latent as colours",
    response_class=Response,
    responses=_answers(_PNG),
)
@needs("read")
async def get_latent(
    stream: StreamPath,
    query: Annotated[LatentQuery, Query()],
    backend: FromBackend,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """One cell per token. The three directions in which the model's tokens differ most are red,
    green and blue, by a basis fixed per model: one colour means one thing over time, horizons and
    streams. `X-Horizons` tells which horizons this picture has."""
    picture = await _picture(backend.store, stream, "latent", at=query.at)
    panels = _panels(picture, stream)
    chosen = panels.each() if query.strip else [_panel(panels, stream, query.horizon_s)]
    scale = _scale(query.scale, panels, count=len(chosen))
    headers = _headers(picture, variant=f"{query.horizon_s:g} {query.strip} {scale}")
    headers["X-Horizons"] = _listed(panels)
    if _is_known(headers["ETag"], if_none_match):
        return Response(status_code=304, headers=headers)
    # In a thread: a long strip of a large model takes milliseconds.
    png = await asyncio.to_thread(
        encode_strip,
        chosen,
        rows=panels.rows,
        columns=panels.columns,
        scale=scale,
        rule=max(1, scale // 8),
    )
    return Response(png, media_type=_PNG, headers=headers)


async def _picture(
    store: Store, stream: str, kind: PictureKind, *, at: str | None
) -> StoredPicture:
    at_ns = None if at is None else _parsed(at)
    record = await store.get_stream(stream)
    try:
        return await store.get_picture(stream, kind, at_ns=at_ns)
    except NotFound as error:
        if record.desired == "paused":
            raise NotFound(f"{error.message} The stream is paused.") from error
        if record.outcome:
            raise NotFound(f"{error.message} The stream has {record.outcome}.") from error
        raise


def _panels(picture: StoredPicture, stream: str) -> Panels:
    try:
        return unpack_panels(picture.body)
    except ValueError as error:
        raise NotFound(
            f"The latent picture of stream {stream!r} was written by another version of the"
            " service; those of this one will follow."
        ) from error


def _parsed(at: str) -> int:
    # An unescaped plus sign comes out of a query as a space.
    try:
        return parse_utc(at.replace(" ", "+"))
    except ValueError as error:
        raise ConfigError(
            "at is no time; write RFC 3339 with a zone, like 2026-12-01T09:00:03.4Z."
        ) from error


def _panel(panels: Panels, stream: str, horizon_s: float) -> bytes:
    panel = panels.panel(horizon_s)
    if panel is None:
        raise NotFound(
            f"The picture of stream {stream!r} has no horizon {horizon_s:g} s; it has"
            f" {_listed(panels)} (0 is what was seen)."
        )
    return panel


def _scale(asked: int | None, panels: Panels, *, count: int) -> int:
    cells = count * panels.rows * panels.columns
    largest = max(1, math.isqrt(_MAX_PIXELS // cells))
    if asked is not None and asked > largest:
        raise ConfigError(f"scale is {asked}; for {cells} cells it is at most {largest}.")
    return asked or min(largest, max(1, _SHOWN_PIXELS // panels.rows))


def _listed(panels: Panels) -> str:
    return ", ".join(f"{each:g}" for each in panels.horizons_s)


def _headers(picture: StoredPicture, *, variant: str) -> dict[str, str]:
    digest = hashlib.sha256(picture.body + variant.encode()).hexdigest()[:16]
    return {
        "ETag": f'"{digest}"',
        "Last-Modified": formatdate(picture.captured_at_ns // 10**9, usegmt=True),
        "X-Capture-Time": format_utc(picture.captured_at_ns),
        # May be kept by the one who asked, and must be asked for again each time.
        "Cache-Control": "private, no-cache",
    }


def _is_known(etag: str, if_none_match: str | None) -> bool:
    known = [each.strip().removeprefix("W/") for each in (if_none_match or "").split(",")]
    return etag in known or "*" in known
