"""The query of a feed: where to begin and what is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError
from starlette.datastructures import QueryParams

from streamer.errors import ProtocolViolation
from streamer.events.cursor import Cursor, parse_cursor
from streamer.events.explained import nearest_name
from streamer.events.inbox import explain_problems
from streamer.events.schema import FeedOptions

__all__ = ["FeedQuery", "parse_many", "parse_one"]

_LISTS = frozenset({"types", "horizons_s", "heads"})
_OPTIONS = frozenset(FeedOptions.model_fields)
_COMMON = frozenset({"after", "strict", "ticket"})
_BOOLS = {"true": True, "1": True, "": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedQuery:
    """What a client asks for when it connects."""

    streams: tuple[str, ...]
    after: Mapping[str, Cursor]
    strict: bool
    options: FeedOptions


def parse_one(query: QueryParams, stream: str, *, last_event_id: str | None = None) -> FeedQuery:
    """For the feed of one stream.

    Args:
        query: `after` (a cursor), `strict`, and the options of `FeedOptions`, lists with commas.
        stream: from the path.
        last_event_id: where a client that comes back left off; goes before `after`.

    Raises:
        ProtocolViolation: the sentence says what cannot be.
    """
    _check_names(query, _COMMON | _OPTIONS)
    at = last_event_id or query.get("after")
    return FeedQuery(
        streams=(stream,),
        after={} if at is None else {stream: parse_cursor(at)},
        strict=_is_strict(query),
        options=_options(query),
    )


def parse_many(query: QueryParams, *, max_streams: int) -> FeedQuery:
    """For a feed of several streams: `stream`, repeated, and `after=STREAM:CURSOR`, repeated.

    Raises:
        ProtocolViolation: the sentence says what cannot be.
    """
    _check_names(query, _COMMON | _OPTIONS | {"stream"})
    streams = tuple(dict.fromkeys(query.getlist("stream")))
    if not 0 < len(streams) <= max_streams:
        raise ProtocolViolation(
            f"Name 1 to {max_streams} streams, like ?stream=kitchen&stream=hall."
        )
    after = dict(_cursor_of(text) for text in query.getlist("after"))
    for stream in after:
        if stream not in streams:
            raise ProtocolViolation(f"after names {stream[:80]!r}, which is not among the streams.")
    return FeedQuery(
        streams=streams, after=after, strict=_is_strict(query), options=_options(query)
    )


def _cursor_of(text: str) -> tuple[str, Cursor]:
    stream, colon, cursor = text.partition(":")
    if not colon:
        raise ProtocolViolation("Write after=STREAM:CURSOR, like after=kitchen:7f3a:418.")
    return stream, parse_cursor(cursor)


def _check_names(query: QueryParams, known: frozenset[str]) -> None:
    unknown = sorted(query.keys() - known)
    if unknown:
        names = ", ".join(sorted(known))
        near = nearest_name(unknown[0], known) or "."
        raise ProtocolViolation(f"A feed knows no {unknown[0][:40]!r}{near} It takes {names}.")


def _is_strict(query: QueryParams) -> bool:
    is_strict = _BOOLS.get(query.get("strict", "false").lower())
    if is_strict is None:
        raise ProtocolViolation("strict is true or false.")
    return is_strict


def _options(query: QueryParams) -> FeedOptions:
    fields = {
        name: ",".join(query.getlist(name)).split(",") if name in _LISTS else query[name]
        for name in _OPTIONS & query.keys()
    }
    try:
        return FeedOptions.model_validate(fields)
    except ValidationError as error:
        raise ProtocolViolation(explain_problems(error)) from error
