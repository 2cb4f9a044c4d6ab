"""Latent pictures on their way to one subscriber: one per stream, the newest wins."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from streamer.events.schema import LatentPanel

__all__ = ["Showcase", "Shown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The latent picture of one anticipation, for all who want it."""

    stream: str
    seq: int
    """Of the anticipation."""
    capture_time: str
    panels: tuple[LatentPanel, ...]


class Showcase:
    """Its size is bounded by the streams of a session. What is lost here, nobody is told of."""

    def __init__(self) -> None:
        self._shown: dict[str, Shown] = {}

    def put(self, shown: Shown) -> None:
        """In place of the one of its stream that was not taken."""
        self._shown[shown.stream] = shown

    def pop(self, streams: Container[str]) -> Shown | None:
        """The one that waits longest, of these streams; those of others are forgotten."""
        while self._shown:
            shown = self._shown.pop(next(iter(self._shown)))
            if shown.stream in streams:
                return shown
        return None
