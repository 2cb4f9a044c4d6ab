"""A video file as a source: decoded as fast as the sink takes it, or in real time.

Capture time is the file's creation time (1970-01-01 where it has none) plus the time since its
first picture. What cannot be decoded is counted and skipped; a truncated file gives what it has.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import av
from av.container import InputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from streamer.clock import monotonic_ns
from streamer.errors import SourceUnsupported
from streamer.records import ClockReading, Picture, SourceState
from streamer.sources.config import FileConfig
from streamer.sources.file_container import created_ns, duration_s, opened
from streamer.sources.pace import Pace
from streamer.sources.source import Report, Sink

__all__ = ["FileSource"]

_DEFAULT_FPS = 25.0
# Containers round their duration, and sound may go on after the last picture.
_MISSING_S = 1.0
_READING = ClockReading(clock="file", why="ok")

_log = logging.getLogger(__name__)


class FileSource:
    """A file as a `Source`. Live only with `is_realtime`.

    Args:
        name: redacted display name.
        is_realtime: play by the wall clock, as a camera would; late pictures may then be lost.
        now_ns: monotonic clock.
        wait: waits that long, seconds, or until the event is set, and says whether it is.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        is_realtime: bool = False,
        config: FileConfig | None = None,
        now_ns: Callable[[], int] = monotonic_ns,
        wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
    ) -> None:
        self.name = name
        self.live = is_realtime
        self.reading: ClockReading | None = None
        self.duration_s: float | None = None
        """Declared length, seconds; None before `probe` or `run`, or if the file does not say."""
        self.counts: Counter[str] = Counter()
        """`pictures`, `corrupt` (decoded, but damaged), `undecodable` (packets skipped),
        `truncated` (1: the container broke off). Written by the decode thread."""
        self._played_s = 0.0
        self._path = path
        self._config = config or FileConfig()
        self._now_ns = now_ns
        self._wait = wait

    def probe(self) -> None:
        """Open and close the file, to learn `duration_s` or why it cannot be used.

        Raises:
            SourceUnavailable, SourceUnsupported: as `run`.
        """
        with opened(self._path, name=self.name, config=self._config) as stream:
            self.duration_s = duration_s(stream)

    def run(self, *, sink: Sink, report: Report, stop: threading.Event) -> None:
        """Push every picture in order of presentation; returns at the end or after `stop`.

        Raises:
            SourceUnavailable: there is no such file, or it may not be read.
            SourceUnsupported: no video that can be decoded; the sentence says why.
        """
        report(SourceState(state="starting", reason="opening"))
        with opened(self._path, name=self.name, config=self._config) as stream:
            self.duration_s = duration_s(stream)
            pace = Pace(now_ns=self._now_ns, wait=lambda early_s: self._wait(stop, early_s))
            report(SourceState(state="live"))
            for picture in self._pictures(stream, stop=stop):
                if self.live and picture.pts_s is not None:
                    pace.hold(picture.pts_s)
                if stop.is_set():
                    return
                self.reading = _READING
                sink(picture)
        if stop.is_set():
            return
        if not self.counts["pictures"]:
            raise SourceUnsupported(
                f"{self.name} holds no picture that can be decoded; it may be damaged."
            )
        report(self._farewell())

    def _farewell(self) -> SourceState:
        """How it ended, with what was found damaged on the way."""
        missing_s = (self.duration_s or 0.0) - self._played_s
        facts = {
            "the container breaks off": self.counts["truncated"] > 0,
            f"it ends {missing_s:.1f} s early": missing_s > _MISSING_S,
            f"{self.counts['undecodable']} packets could not be decoded": self.counts["undecodable"]
            > 0,
            f"{self.counts['corrupt']} pictures are damaged": self.counts["corrupt"] > 0,
        }
        found = [fact for fact, holds in facts.items() if holds]
        if not found:
            return SourceState(state="ended", reason="eof")
        return SourceState(
            state="ended",
            reason="damaged",
            detail=f"{self.counts['pictures']} pictures could be read, but {'; '.join(found)}.",
        )

    def _pictures(self, stream: VideoStream, *, stop: threading.Event) -> Iterator[Picture]:
        base_ns, times = created_ns(stream) or 0, _Times(stream)
        for packet in self._packets(stream):
            if stop.is_set():
                return
            began_ns = self._now_ns()
            frames = self._decoded(packet)
            decode_ms = (self._now_ns() - began_ns) / 1e6 / max(1, len(frames))
            for frame in frames:
                pts_s = times.of(frame)
                self._played_s = max(self._played_s, pts_s - times.first_s)
                yield Picture(
                    image=frame,
                    pts_s=pts_s,
                    captured_at_ns=base_ns + round((pts_s - times.first_s) * 1e9),
                    arrived_ns=self._now_ns(),
                    clock="file",
                    generation=0,
                    index=self.counts["pictures"],
                    decode_ms=decode_ms,
                )
                self.counts["pictures"] += 1
                self.counts["corrupt"] += frame.is_corrupt

    def _packets(self, stream: VideoStream) -> Iterator[Packet[VideoStream]]:
        container = stream.container
        assert isinstance(container, InputContainer)
        reading = container.demux(stream)
        while True:
            try:
                packet = next(reading, None)
            except (av.FFmpegError, OSError):
                self.counts["truncated"] = 1
                _log.info("file breaks off", extra={"source": self.name})
                return
            if packet is None:
                return
            yield packet

    def _decoded(self, packet: Packet[VideoStream]) -> list[VideoFrame]:
        try:
            frames = packet.decode()
        except av.FFmpegError:
            self.counts["undecodable"] += 1
            return []
        return [frame for frame in frames if isinstance(frame, VideoFrame)]


class _Times:
    """Presentation times; where one is missing, one period after the picture before."""

    def __init__(self, stream: VideoStream) -> None:
        rate = float(stream.average_rate or 0)
        self.first_s = 0.0
        self._period_s = 1 / (rate if math.isfinite(rate) and rate > 0 else _DEFAULT_FPS)
        self._last_s: float | None = None

    def of(self, frame: VideoFrame) -> float:
        found = frame.time
        if found is None:
            found = 0.0 if self._last_s is None else self._last_s + self._period_s
        if self._last_s is None:
            self.first_s = found
        self._last_s = found
        return found
