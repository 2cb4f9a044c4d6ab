"""Retained events by REST, anticipations unless asked otherwise: the same as on the feed."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from streamer.errors import CapacityError, ConfigError, ResumeGone
from streamer.events.cursor import format_cursor, parse_cursor
from streamer.events.render import Renderer, render
from streamer.gateway.backend import FromBackend
from streamer.gateway.guard import GuardedRoute, needs
from streamer.gateway.hub import FromHub
from streamer.gateway.problems import Problem
from streamer.gateway.schema import History, HistoryGap, HistoryQuery
from streamer.gateway.streams import StreamPath
from streamer.gateway.views import LOG_END
from streamer.store.protocol import LogEntry, LogSlice, Store

__all__ = ["router"]

router = APIRouter(tags=["history"], route_class=GuardedRoute)

_CHUNK = 256
_TRIES = 3
_NDJSON = "application/x-ndjson"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    log: LogSlice
    entries: list[LogEntry]
    last_seq: int
    """Newest looked at."""
    gap: HistoryGap | None = None


@router.get(
    "/v1/streams/{stream}/anticipations",
    summary="Read past anticipations",
    response_model=History,
    responses={
        200: {"content": {_NDJSON: {"schema": {"type": "string"}}}},
        400: {"model": Problem, "description": "a cursor that is none, or `limit` is too large"},
        404: {"model": Problem, "description": "no such stream"},
        410: {
            "model": Problem,
            "description": "`before` is from a log that was lost (for `after` that is a `gap`)",
        },
    },
)
@needs("read")
async def get_anticipations(
    stream: StreamPath,
    query: Annotated[HistoryQuery, Query()],
    request: Request,
    backend: FromBackend,
    hub: FromHub,
) -> Response:
    """Oldest first. With `after`: the first `limit` events after it; without: the newest `limit`
    (before `before`). `types=anticipation,surprise` gives the episodes of surprise, too.
    `Accept: application/x-ndjson` gives one event per line."""
    if query.limit > backend.config.max_history:
        raise ConfigError(
            f"limit is {query.limit}; at most {backend.config.max_history} is allowed."
        )
    found = await _find(backend.store, stream, query, renderer=hub.renderer)
    events = [render(entry.body, found.log.epoch, entry.seq) for entry in found.entries]
    if _NDJSON in request.headers.get("accept", ""):
        return Response(b"".join(event + b"\n" for event in events), media_type=_NDJSON)
    head = History(
        stream=stream,
        epoch=found.log.epoch,
        first_seq=found.log.first_seq,
        head_seq=found.log.head_seq,
        gap=found.gap,
        next_after=format_cursor(found.log.epoch, found.last_seq),
        events=[],
    ).model_dump_json(exclude={"events"})
    content = f'{head[:-1]},"events":['.encode() + b",".join(events) + b"]}"
    return Response(content, media_type="application/json")


class _BeganAnew(Exception):
    """The log was lost between two of its slices; what was read of the old one is void."""


async def _find(store: Store, stream: str, query: HistoryQuery, *, renderer: Renderer) -> _Found:
    """All from one epoch. Safe to cancel.

    Raises:
        CapacityError: the log begins anew all the time.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(_BeganAnew):
            return await _find_once(store, stream, query, renderer=renderer)
    raise CapacityError(f"The log of stream {stream!r} began anew while it was read.", 1.0)


async def _find_once(
    store: Store, stream: str, query: HistoryQuery, *, renderer: Renderer
) -> _Found:
    log = await store.read(stream, after_seq=LOG_END, limit=1)
    end_seq = min(_before_seq(query.before, log), log.head_seq + 1)
    reader = _Forward(store, stream, log=log, end_seq=end_seq, types=query.types, renderer=renderer)
    if query.after is None:
        entries = await _newest(reader, query.limit, log=log)
        return _Found(log=reader.log, entries=entries, last_seq=max(end_seq - 1, 0))
    after_seq, gap = _after_seq(query.after, log)
    entries = await reader.read(after_seq, limit=query.limit)
    if reader.lost_seq > after_seq:  # by age, since the log was first looked at
        gap = HistoryGap(
            from_seq=gap.from_seq if gap else after_seq + 1,
            to_seq=reader.lost_seq,
            reason=gap.reason if gap else "retention",
        )
    return _Found(log=reader.log, entries=entries, last_seq=reader.last_seq, gap=gap)


def _before_seq(cursor: str | None, log: LogSlice) -> int:
    if cursor is None:
        return LOG_END
    before = parse_cursor(cursor)
    if before.epoch not in (None, log.epoch):
        raise ResumeGone(
            f"The event {cursor} is from a log that was lost; it began anew as {log.epoch}."
        )
    return before.seq


def _after_seq(cursor: str, log: LogSlice) -> tuple[int, HistoryGap | None]:
    """Where to begin, and what is missing from there; the rules of the feed's resume."""
    after = parse_cursor(cursor)
    if after.epoch not in (None, log.epoch) or after.seq > log.head_seq:
        return 0, HistoryGap(from_seq=1, to_seq=log.first_seq - 1, reason="restart")
    if after.seq + 1 < log.first_seq:
        lost = HistoryGap(from_seq=after.seq + 1, to_seq=log.first_seq - 1, reason="retention")
        return log.first_seq - 1, lost
    return after.seq, None


class _Forward:
    """Reads on from a place, skipping events of other types.

    Args:
        log: a slice of the log; only its epoch is read.
        types: with commas.
    """

    def __init__(
        self,
        store: Store,
        stream: str,
        *,
        log: LogSlice,
        end_seq: int,
        types: str,
        renderer: Renderer,
    ) -> None:
        self.log = log
        """The newest slice."""
        self.end_seq = end_seq
        """Nothing from here on is read."""
        self.last_seq = 0
        """Newest looked at, in the newest `read`."""
        self.lost_seq = 0
        """Up to here events were gone when `read` began."""
        self._store = store
        self._stream = stream
        self._types = {each.strip() for each in types.split(",")}
        self._renderer = renderer

    async def read(self, after_seq: int, *, limit: int) -> list[LogEntry]:
        """Up to `limit` events below the end; fewer if the log's begin overtakes. Safe to cancel.

        Raises:
            _BeganAnew: the epoch is another one.
        """
        found: list[LogEntry] = []
        self.last_seq = after_seq
        while self.last_seq + 1 < self.end_seq and len(found) < limit:
            log = await self._store.read(self._stream, after_seq=self.last_seq, limit=_CHUNK)
            if log.epoch != self.log.epoch:
                raise _BeganAnew
            self.log = log
            if log.first_seq > self.last_seq + 1:
                if self.last_seq > after_seq:
                    break
                self.lost_seq = self.last_seq = log.first_seq - 1
            if not log.entries:
                break
            self._take(log, found, limit=limit)
            await asyncio.sleep(0)  # a store in this process never lets anybody else run
        return found

    def _take(self, log: LogSlice, found: list[LogEntry], *, limit: int) -> None:
        for entry in log.entries:
            if entry.seq >= self.end_seq or len(found) == limit:
                self.last_seq = max(self.last_seq, min(entry.seq, self.end_seq) - 1)
                return
            self.last_seq = entry.seq
            if self._renderer.event_type(entry.body) in self._types:
                found.append(entry)


async def _newest(reader: _Forward, limit: int, *, log: LogSlice) -> list[LogEntry]:
    """The last `limit` events below the reader's end: the log backwards, a chunk at a time."""
    found: list[LogEntry] = []
    while len(found) < limit and reader.end_seq > log.first_seq:
        after_seq = max(log.first_seq - 1, reader.end_seq - 1 - _CHUNK)
        found = await reader.read(after_seq, limit=_CHUNK) + found
        reader.end_seq = after_seq + 1
    return found[-limit:]
