"""What a live source says of itself, in order, although two threads have something to say.

The reader sits inside FFmpeg while nothing comes, for as long as its read timeout. That a camera
is silent has to be told sooner, so a small watch thread tells `stalled` meanwhile. It never
touches the connection: closing one under its reader crashes FFmpeg.
"""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType
from typing import Self

from streamer.clock import monotonic_ns
from streamer.records import SourceState
from streamer.sources.source import Report

__all__ = ["LiveStates"]

_PERIODS_BEFORE_STALL = 5
_PERIODS_MEASURED = 16


class LiveStates:
    """Reports state changes one after the other; a context manager that owns the watch thread.

    `report` is called from the reader's and from the watch thread, never from both at once; it
    must return quickly and not call back.
    """

    def __init__(self, report: Report, *, stall_s: float) -> None:
        self._report = report
        self._stall_ns = round(stall_s * 1e9)
        self._changed = threading.Condition()
        self._state = SourceState(state="starting")
        self._closed = False
        self._last_ns = 0
        self._periods_ns: deque[int] = deque(maxlen=_PERIODS_MEASURED)
        self._watch = threading.Thread(target=self._watching, name="source-watch", daemon=True)

    def say(self, state: SourceState) -> None:
        """Report `state`."""
        with self._changed:
            self._say(state)

    def picture(self, arrived_ns: int) -> None:
        """A picture came, at that monotonic time: the source is live."""
        with self._changed:
            if self._state.state == "live":
                self._periods_ns.append(arrived_ns - self._last_ns)
            self._last_ns = arrived_ns
            if self._state.state != "live":
                self._say(SourceState(state="live"))

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._watch.join()

    def _say(self, state: SourceState) -> None:
        became_live = state.state == "live" != self._state.state
        self._state = state
        self._report(state)
        if became_live:
            self._changed.notify_all()

    def _watching(self) -> None:
        with self._changed:
            while not self._closed:
                if self._state.state != "live":
                    self._changed.wait()
                elif (left_ns := self._last_ns + self._limit_ns() - monotonic_ns()) > 0:
                    self._changed.wait(left_ns / 1e9)
                else:
                    self._say(self._stalled())

    def _limit_ns(self) -> int:
        """`stall_s`, or five typical frame periods of a slow camera."""
        if not self._periods_ns:
            return self._stall_ns
        typical = sorted(self._periods_ns)[len(self._periods_ns) // 2]
        return max(self._stall_ns, _PERIODS_BEFORE_STALL * typical)

    def _stalled(self) -> SourceState:
        silent_s = (monotonic_ns() - self._last_ns) / 1e9
        detail = f"No picture for {silent_s:.1f} s; waiting for the camera."
        return SourceState(state="stalled", reason="no_frames", detail=detail)
