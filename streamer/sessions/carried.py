"""A clip between the two halves of its way."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.records import Clip, Encoded

__all__ = ["Carried"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A clip that is encoded and waits for its rollout."""

    clip: Clip
    encoded: Encoded
    encoded_ns: int
    """Monotonic, when the encoder answered."""
    untold: int = 0
    """Clips thrown away between this one and the one encoded before it."""

    def waited_s(self, *, now_ns: int) -> float:
        """Since its newest picture came, wherever; computing is no waiting."""
        return (now_ns - self.clip.arrived_ns) / 1e9 - self.encoded.encode_ms / 1e3
