"""What a running session says of itself, and the rates behind it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from streamer.records import SourceState

__all__ = ["Counts", "RateMeter", "SessionStatus"]


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


class RateMeter:
    """Totals -> events per second, between two calls at least `span_s` apart.

    The span after the first event is not told: some sources begin with a burst of what was before.
    """

    def __init__(self, *, span_s: float = 2.0) -> None:
        self._span_ns = int(span_s * 1e9)
        self._since: tuple[int, int] | None = None
        self._is_settled = False
        self._rate: float | None = None

    def rate(self, total: int, *, now_ns: int) -> float | None:
        """Per second to two digits, as of the last full span; None before there is one."""
        if self._since is None:
            if total == 0:
                return None
            self._since = (total, now_ns)
        elapsed_ns = now_ns - self._since[1]
        if elapsed_ns >= self._span_ns:
            if self._is_settled:
                self._rate = round((total - self._since[0]) * 1e9 / elapsed_ns, 2)
            self._is_settled = True
            self._since = (total, now_ns)
        return self._rate


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """Written to the store once a second with a TTL; the gateway shows it as it is."""

    state: SourceState
    source: str
    """Redacted display name."""
    owner: str
    """Process or replica that runs the session."""
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
    lag_s: float | None
    """Arrival of the newest picture in the last event to the event's publication."""
    last_error: str = ""

    def as_json(self) -> dict[str, Any]:
        """Flat JSON values: the fields of `state` and `counts` stand beside the others."""
        flat: dict[str, Any] = {}
        for name, value in asdict(self).items():
            flat |= value if isinstance(value, dict) else {name: value}
        return flat
