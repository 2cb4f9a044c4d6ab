"""Register, list, show, pause and delete streams."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from streamer.errors import ConfigError, Conflict
from streamer.gateway.admission import admit, readmit
from streamer.gateway.backend import Backend, FromBackend
from streamer.gateway.guard import GuardedRoute, needs
from streamer.gateway.problems import Problem
from streamer.gateway.schema import PageQuery, StreamCreate, StreamPage, StreamPatch, StreamView
from streamer.gateway.views import stream_view, stream_views
from streamer.records import StreamRecord

__all__ = ["StreamPath", "router"]

router = APIRouter(prefix="/v1/streams", tags=["streams"], route_class=GuardedRoute)

StreamPath = Annotated[
    str, Path(max_length=64, description="the stream's id", examples=["kitchen"])
]
_NOT_FOUND: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "no such stream"}
}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "a setting cannot work"},
    403: {"model": Problem, "description": "the source policy says no"},
    422: {"model": Problem, "description": "not a request, or a horizon out of reach"},
    502: {"model": Problem, "description": "the source's host name does not resolve"},
}
_CHANGE_TRIES = 8


@router.post(
    "",
    status_code=201,
    summary="Watch a source",
    responses={
        **_REFUSALS,
        200: {"model": StreamView, "description": "registered with the same settings before"},
        404: {"model": Problem, "description": "no such model is served"},
        409: {"model": Problem, "description": "the id is taken by other settings"},
        503: {"model": Problem, "description": "no model is loaded yet, or too many streams"},
    },
)
@needs("write")
async def create_stream(
    request: StreamCreate, response: Response, backend: FromBackend
) -> StreamView:
    """Registers the stream; a session opens it within a second. With an `id` the request may be
    repeated: the settings that the stream has now answer 200, others 409. Horizons are rounded up
    to whole steps of the model and echoed."""
    spec = await admit(backend, request)
    stream = request.id or f"s-{secrets.token_hex(5)}"
    record, is_new = await backend.store.create_stream(stream, spec)
    response.status_code = 201 if is_new else 200
    response.headers["Location"] = f"/v1/streams/{record.stream}"
    return await stream_view(backend.store, record)


@router.get(
    "",
    summary="List streams",
    responses={400: {"model": Problem, "description": "`limit` is too large"}},
)
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


@router.patch(
    "/{stream}",
    summary="Change a stream, pause or continue it",
    responses={
        **_REFUSALS,
        404: {"model": Problem, "description": "no such stream, or no such model is served"},
        409: {"model": Problem, "description": "others change the stream all the time"},
        503: {"model": Problem, "description": "no model is loaded yet"},
    },
)
@needs("write")
async def patch_stream(
    stream: StreamPath, request: StreamPatch, backend: FromBackend
) -> StreamView:
    """What is left out stays as it is. The running session takes other horizons, another mode and
    retention with its next clip; another source, model or sampling opens the source again at once.
    `applied_revision` tells when it has happened. `paused` lets go of the camera and keeps the
    events; `live` opens it again, also after the stream ended or failed. So does any change of its
    settings."""
    record = await backend.store.get_stream(stream)
    if request.state == "paused":  # before a change that would open the source again
        if request.settings:  # what is refused is refused whole
            await readmit(backend, request, spec=record.spec)
        record = await backend.store.set_desired(stream, "paused")
    if request.settings:
        record = await _change(backend, record, request)
    if request.state == "live":
        record = await backend.store.set_desired(stream, "live")
    return await stream_view(backend.store, record)


async def _change(backend: Backend, record: StreamRecord, request: StreamPatch) -> StreamRecord:
    """Two who change different settings at once both get what they asked for."""
    for _ in range(_CHANGE_TRIES):
        spec = await readmit(backend, request, spec=record.spec)
        try:
            return await backend.store.change_stream(
                record.stream, spec, if_revision=record.revision
            )
        except Conflict:
            record = await backend.store.get_stream(record.stream)
    raise Conflict(f"Stream {record.stream!r} is being changed by others all the time; try again.")


@router.delete(
    "/{stream}", status_code=204, summary="Stop and forget a stream", responses=_NOT_FOUND
)
@needs("write")
async def delete_stream(stream: StreamPath, backend: FromBackend) -> None:
    """Its events stay readable until they age out."""
    await backend.store.delete_stream(stream)
