"""How a session ended."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Ending"]


class Ending(StrEnum):
    """Why `Session.run` returned. `ENDED` and `FAILED` are for good, the others are not."""

    ENDED = "ended"
    """The source was read to its end."""
    FAILED = "failed"
    """The source or the model cannot serve this stream; the stream's outcome says so."""
    PAUSED = "paused"
    """Somebody wants the stream paused."""
    REPLACED = "unregistered or changed"
    """The stream is gone from the registry, or its specification changed."""
    LEASE_LOST = "lease_lost"
    """Another session owns the stream now."""
