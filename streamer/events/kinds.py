"""The `type` of every message that a server sends; a test holds these to the message models."""

from __future__ import annotations

from collections.abc import Iterable

from streamer.events.explained import nearest_name

__all__ = ["RETAINED_TYPES", "SERVER_TYPES", "check_types"]

RETAINED_TYPES = ("anticipation", "surprise", "stream.state")
"""Those that a log keeps."""
SERVER_TYPES = (
    *RETAINED_TYPES,
    "session.created",
    "session.updated",
    "session.closing",
    "gap",
    "heartbeat",
    "stats",
    "latent.picture",
    "error",
)


def check_types(types: Iterable[str], *, known: tuple[str, ...] = SERVER_TYPES) -> None:
    """Raises ValueError for one that is not known: a filter by it would never match."""
    for each in types:
        if each not in known:
            near = nearest_name(each, known) or f"; there are {', '.join(known)}"
            what = "no event of type" if known is RETAINED_TYPES else "no type"
            raise ValueError(f"there is {what} {each[:40]!r}{near}")
