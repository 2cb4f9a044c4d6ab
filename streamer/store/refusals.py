"""Why a store says no: the same sentences from every implementation."""

from __future__ import annotations

import re

from streamer.clock import format_utc
from streamer.errors import CapacityError, Conflict, LeaseLost, NotFound
from streamer.store.config import StoreConfig
from streamer.store.protocol import PictureKind, StoredPicture

__all__ = [
    "check_body",
    "check_picture",
    "check_revision",
    "lease_held",
    "lease_lost",
    "no_picture",
    "no_room",
    "other_spec",
    "unknown_stream",
]

_MEDIA_TYPE = re.compile(r"image/[a-z0-9.+-]{1,40}")


def unknown_stream(stream: str) -> NotFound:
    return NotFound(f"There is no stream {stream!r}.")


def other_spec(stream: str) -> Conflict:
    return Conflict(
        f"Stream {stream!r} is registered with other settings;"
        f" change them (PATCH, `streamer streams set {stream} ...`), delete it first"
        " or take another id."
    )


def no_room(config: StoreConfig) -> CapacityError:
    return CapacityError(
        f"{config.max_streams} streams are registered, the most this store takes; delete one first."
    )


def lease_held(stream: str, owner: str) -> Conflict:
    return Conflict(f"Stream {stream!r} is run by {owner}; its lease is fresh.")


def lease_lost(stream: str) -> LeaseLost:
    return LeaseLost(
        f"The lease on stream {stream!r} is no longer ours: it expired, was taken over, or the "
        "stream was deleted."
    )


def check_body(body: bytes, config: StoreConfig) -> None:
    """Raises `ValueError` unless `body` looks like a JSON object of a size that is taken."""
    if len(body) > config.max_body_bytes:
        raise ValueError(f"an event of {len(body)} bytes; the store takes {config.max_body_bytes}")
    if not (body.startswith(b"{") and body.endswith(b"}")):
        raise ValueError("an event's body is one JSON object, without space around it")


def check_revision(stream: str, revision: int, *, wanted: int | None) -> None:
    """Raises `Conflict` unless the record has the revision that somebody wants to change."""
    if wanted is not None and revision != wanted:
        raise Conflict(
            f"Stream {stream!r} is at revision {revision}, not {wanted}; read it again and repeat"
            " the change."
        )


def check_picture(picture: StoredPicture, config: StoreConfig) -> None:
    """Raises `ValueError` unless it is a picture of a size that is taken."""
    if not 0 < len(picture.body) <= config.max_picture_bytes:
        raise ValueError(
            f"a picture of {len(picture.body)} bytes; the store takes 1 to"
            f" {config.max_picture_bytes}"
        )
    if not _MEDIA_TYPE.fullmatch(picture.media_type):
        raise ValueError(f"a picture of type {picture.media_type!r}; that is no image type")
    if picture.captured_at_ns < 0:
        raise ValueError("a picture captured before 1970")


def no_picture(
    stream: str, kind: PictureKind, *, at_ns: int | None, count: int, span: tuple[int, int] | None
) -> NotFound:
    """`span` is the first and last capture time of the `count` pictures there are."""
    if span is None:
        return NotFound(
            f"No {kind} of stream {stream!r} is retained; it writes one per stride while it runs."
        )
    first, last = map(format_utc, span)
    asked = "" if at_ns is None else f" of {format_utc(at_ns)} or before"
    return NotFound(
        f"No {kind} of stream {stream!r}{asked} is retained; there are {count}, from {first} to"
        f" {last}."
    )
