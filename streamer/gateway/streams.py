"""Register, list, show, pause and delete streams."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from streamer.errors import ConfigError
from streamer.gateway.admission import admit
from streamer.gateway.backend import FromBackend
from streamer.gateway.guard import GuardedRoute, needs
from streamer.gateway.problems import Problem
from streamer.gateway.schema import PageQuery, StreamCreate, StreamPage, StreamPatch, StreamView
from streamer.gateway.views import stream_view, stream_views

__all__ = ["StreamPath", "router"]

router = APIRouter(prefix="/v1/streams", tags=["streams"], route_class=GuardedRoute)

StreamPath = Annotated[
    str, Path(max_length=64, description="the stream's id", examples=["kitchen"])
]
_NOT_FOUND: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "no such stream"}
}


@router.post(
    "",
    status_code=201,
    summary="Watch a source",
    responses={
        200: {"model": StreamView, "description": "registered with the same settings before"},
        400: {"model": Problem, "description": "a setting cannot work"},
        403: {"model": Problem, "description": "the source policy says no"},
        404: {"model": Problem, "description": "no such model is served"},
        409: {"model": Problem, "description": "the id is taken by other settings"},
        422: {"model": Problem, "description": "not a request, or a horizon out of reach"},
        502: {"model": Problem, "description": "the source's host name does not resolve"},
        503: {"model": Problem, "description": "no model is loaded yet, or too many streams"},
    },
)
@needs("write")
async def create_stream(
    request: StreamCreate, response: Response, backend: FromBackend
) -> StreamView:
    """Registers the stream; a session opens it within a second. With an `id` the request may be
    repeated: the same settings answer 200, others 409. Horizons are rounded up to whole steps of
    the model and echoed."""
    spec = await admit(backend, request)
    stream = request.id or f"s-{secrets.token_hex(5)}"
    record, is_new = await backend.store.create_stream(stream, spec)
    response.status_code = 201 if is_new else 200
    response.headers["Location"] = f"/v1/streams/{record.stream}"
    return await stream_view(backend.store, record)


@router.get("", summary="List streams")
@needs("read")
async def list_streams(page: Annotated[PageQuery, Query()], backend: FromBackend) -> StreamPage:
    """In id order, one page at a time."""
    if page.limit > backend.config.max_page:
        raise ConfigError(f"limit is {page.limit}; at most {backend.config.max_page} is allowed.")
    records = await backend.store.list_streams(after=page.after, limit=page.limit + 1)
    shown = records[: page.limit]
    return StreamPage(
        streams=await stream_views(backend.store, shown),
        next_after=shown[-1].stream if len(records) > page.limit else None,
    )


@router.get("/{stream}", summary="Show a stream", responses=_NOT_FOUND)
@needs("read")
async def get_stream(stream: StreamPath, backend: FromBackend) -> StreamView:
    """What was asked, what is wanted and what is: state, rates, drops, lag, model, newest seq."""
    return await stream_view(backend.store, await backend.store.get_stream(stream))


@router.patch("/{stream}", summary="Pause or continue a stream", responses=_NOT_FOUND)
@needs("write")
async def patch_stream(
    stream: StreamPath, request: StreamPatch, backend: FromBackend
) -> StreamView:
    """`paused` lets go of the camera and keeps the events; `live` opens it again, also after the
    stream ended or failed."""
    record = await backend.store.set_desired(stream, request.state)
    return await stream_view(backend.store, record)


@router.delete(
    "/{stream}", status_code=204, summary="Stop and forget a stream", responses=_NOT_FOUND
)
@needs("write")
async def delete_stream(stream: StreamPath, backend: FromBackend) -> None:
    """Its events stay readable until they age out."""
    await backend.store.delete_stream(stream)
