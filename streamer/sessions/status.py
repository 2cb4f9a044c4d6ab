"""What a running session says of itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from streamer.records import ClockReading, SourceState
from streamer.sessions.clock_watch import clock_fields

__all__ = ["Counts", "SessionStatus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Running totals of one session's decode thread."""

    pictures: int = 0
    """Decoded pictures the source handed over."""
    used: int = 0
    """Of these, converted to frames."""
    sampled_out: int = 0
    """Not on the sampling grid."""
    filled: int = 0
    """Frames repeated to bridge a hole."""
    dropped: int = 0
    """Pictures lost to overflow."""
    clips: int = 0
    """Clips made."""
    generation: int = 0
    """Connection or timeline of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """Written to the store once a second with a TTL; the gateway shows it as it is."""

    state: SourceState
    source: str
    """Redacted display name."""
    owner: str
    """Process or replica that runs the session."""
    revision: int = 0
    """Of the registry's record: what it asks for is what the session does."""
    fps_in: float | None
    """Decoded pictures per second; None until it is known."""
    fps_used: float | None
    """Frames per second that went into clips, repeated ones included; None until it is known."""
    counts: Counts = field(default_factory=Counts)
    clips_encoded: int
    clips_published: int
    clips_superseded: int
    """Clips thrown away because a newer one was ready."""
    clips_rejected: int
    """Clips thrown away because the model pool had no room, or gave no finite numbers."""
    rollouts_superseded: int = 0
    """Published clips whose later horizons are missing, because a newer clip was ready."""
    lag_s: float | None
    """Arrival of the newest picture in the last event to the event's publication."""
    last_error: str = ""
    reading: ClockReading | None = None
    """How the source's clocks stand; None before its first picture."""

    def as_json(self) -> dict[str, Any]:
        """Flat JSON values: the fields of `state` and `counts` stand beside the others, those of
        `reading` under the names of `clock_fields`."""
        flat: dict[str, Any] = {}
        for name, value in asdict(self).items():
            if name == "reading":
                flat |= clock_fields(self.reading)
            else:
                flat |= value if isinstance(value, dict) else {name: value}
        return flat
