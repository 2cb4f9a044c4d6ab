"""The seam between a camera and everything after it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from streamer.records import ClockReading, Picture, SourceState

__all__ = ["Report", "Sink", "Source"]

Sink = Callable[[Picture], None]
Report = Callable[[SourceState], None]


class Source(Protocol):
    """One camera or file. Runs in one thread of its own, the decode thread."""

    name: str
    """Redacted display name: safe in logs, events and APIs."""
    live: bool
    """True: late pictures are worthless and the sink must never block. False: nothing may be lost,
    the sink may block to hold the source back."""
    reading: ClockReading | None
    """How its clocks stood at the newest picture; None before one. Any thread may look."""

    def run(self, *, sink: Sink, report: Report, stop: threading.Event) -> None:
        """Push pictures into `sink` and state changes into `report`, in this thread.

        Returns at the end of a file, or soon after `stop` is set (stop is accepted in every
        state). Live sources reconnect by themselves and raise only when giving up for good.

        Raises:
            SourceError: cannot go on; the class says why.
        """
