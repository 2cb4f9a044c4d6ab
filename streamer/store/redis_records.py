"""Records as they are kept in Redis: JSON, in which unknown fields of newer writers are ignored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from pydantic import TypeAdapter

from streamer.records import Outcome, StreamRecord, StreamSpec
from streamer.store.protocol import Presence

__all__ = ["dump_presence", "dump_record", "load_presence", "load_record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Registered:
    """The part of a record that never changes."""

    spec: StreamSpec
    created_ns: int


_REGISTERED = TypeAdapter(_Registered)
_PRESENCE = TypeAdapter(Presence)


def dump_record(record: StreamRecord) -> tuple[bytes, str]:
    """What never changes, and ``desired|outcome|revision``."""
    registered = _Registered(spec=record.spec, created_ns=record.created_ns)
    wanted = f"{record.desired}|{record.outcome}|{record.revision}"
    return _REGISTERED.dump_json(registered), wanted


def load_record(stream: str, registered: bytes, wanted: bytes) -> StreamRecord:
    """Back from `dump_record`."""
    fixed = _REGISTERED.validate_json(registered)
    desired, outcome, revision = wanted.decode().split("|")
    return StreamRecord(
        stream=stream,
        spec=fixed.spec,
        desired=cast(Literal["live", "paused"], desired),
        outcome=cast(Outcome, outcome),
        revision=int(revision),
        created_ns=fixed.created_ns,
    )


def dump_presence(presence: Presence) -> bytes:
    return _PRESENCE.dump_json(presence)


def load_presence(data: bytes) -> Presence:
    """Back from `dump_presence`."""
    return _PRESENCE.validate_json(data)
