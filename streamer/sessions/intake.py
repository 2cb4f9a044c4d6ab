"""Everything that happens in a stream's decode thread: pictures in, clips out to the event loop.

The loop is woken per clip, never per picture. The assembler's window is the only place where
frames are kept, and it holds as many as a clip has.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace

from streamer.clips.assembler import ClipAssembler
from streamer.clips.config import ClipConfig, check_frames
from streamer.clock import monotonic_ns
from streamer.frames.config import PixelConfig, SamplerConfig
from streamer.frames.framer import Framer
from streamer.frames.pixels import PixelConverter
from streamer.frames.sampler import Sampler
from streamer.records import (
    Clip,
    ClockReading,
    Frame,
    ModelInfo,
    Picture,
    SourceState,
    StreamRecord,
)
from streamer.sessions.clock_watch import ClockWatch
from streamer.sessions.config import SessionConfig
from streamer.sessions.own_thread import in_own_thread
from streamer.sessions.slot import Blocking, ClipSlot, Latest, call_soon
from streamer.sessions.status import Counts
from streamer.sources.source import Report, Source

__all__ = ["Intake", "SourceOpener"]

SourceOpener = Callable[[str], Source]
"""URL with credentials -> source, not started yet. May block; raises `SourceError`."""

_LOG = logging.getLogger(__name__)
_FILLING_PERIOD_NS = 1_000_000_000


class Intake:
    """Owns the source and its thread.

    Args:
        record: the stream; its sampling shapes the clips.
        model: its crop and tubelet do, too.
        report: takes state changes; called in the decode thread.

    Raises:
        ConfigError: the sampling does not fit the model.
    """

    def __init__(
        self, record: StreamRecord, *, model: ModelInfo, report: Report, config: SessionConfig
    ) -> None:
        stream, sampling = record.stream, record.spec.sampling
        self.source_name = ""
        """Redacted; empty until the source was opened."""
        self.is_live = True
        self.farewell = SourceState(state="ended", reason="eof")
        """What is to be said once the last clip was published."""
        self.newest: Frame | None = None
        """The frame that the newest clip ended with; while a window fills, the newest there is."""
        self._stream = stream
        self._url = record.spec.source
        self._announce = report
        self._config = config
        check_frames(sampling.frames, trained_frames=model.trained_frames)
        self._clip_config = ClipConfig(
            frames=sampling.frames,
            fps=sampling.fps,
            stride_s=sampling.stride_s,
            tubelet=model.tubelet,
        )
        self._assembler = ClipAssembler(self._clip_config, stream=stream)
        self._sampler = Sampler(SamplerConfig(fps=sampling.fps))
        self._framer = Framer(
            stream=stream,
            fps=sampling.fps,
            sampler=self._sampler,
            converter=PixelConverter(PixelConfig(crop=model.crop)),
        )
        self._stop = threading.Event()
        self._decoded: asyncio.Event | None = None
        """Set when the thread is over; None before it began."""
        self._slot: ClipSlot | None = None
        self._source: Source | None = None
        self._clock_watch = ClockWatch()
        self._failure: BaseException | None = None
        self._past: list[Clip] = []
        """The newest clip of pictures from before the source began, until one of now comes: the
        older ones are no loss, nobody was there to see them."""
        self._is_filling = True
        self._is_live_unsaid = False
        self._said_filling_ns = 0
        self._clips = 0
        self._pictures = 0
        self._generation = 0
        self._dropped_before = 0

    @property
    def counts(self) -> Counts:
        """Totals so far; a reader in another thread may see one picture more or less."""
        fates = self._sampler.counts
        return Counts(
            pictures=self._pictures,
            used=fates.used,
            sampled_out=fates.sampled_out,
            filled=fates.filled,
            dropped=fates.dropped,
            clips=self._clips,
            generation=self._generation,
        )

    @property
    def reading(self) -> ClockReading | None:
        """How the source's clocks stood at its newest picture; None before one."""
        return self._source.reading if self._source else None

    @property
    def superseded(self) -> int:
        """Clips thrown away for a newer one."""
        return self._slot.superseded if self._slot else 0

    async def start(self, open_source: SourceOpener) -> ClipSlot:
        """Open the source and start decoding. Cancellation: call `stop` after it.

        Returns:
            Where the clips come out: newest wins for a live source, nothing lost for a file.

        Raises:
            SourceError, ConfigError: the source cannot be opened, or not with this policy.
        """
        source = await in_own_thread(lambda: open_source(self._url), name=f"open-{self._stream}")
        self._source, self.source_name, self.is_live = source, source.name, source.live
        slot: ClipSlot = (
            Latest() if source.live else Blocking(self._config.file_clips, stop=self._stop)
        )
        self._slot = slot
        loop, decoded = asyncio.get_running_loop(), asyncio.Event()

        def decode() -> None:
            self._decode(source, slot)
            call_soon(loop, decoded.set)

        # A decoder may hang in a system call for seconds: daemon, so that it cannot keep the
        # process from ending.
        threading.Thread(target=decode, name=f"decode-{self._stream}", daemon=True).start()
        self._decoded = decoded
        return slot

    async def stop(self) -> None:
        """Ask the thread to stop and wait for it, within a bound. Idempotent, safe to cancel."""
        self._stop.set()
        if self._decoded is None:
            return
        # Not `Thread.join` in a thread of the pool: the pool is small, and cameras hang together.
        try:
            async with asyncio.timeout(self._config.join_s):
                await self._decoded.wait()
        except TimeoutError:
            _LOG.warning("decode thread did not stop in time", extra={"stream": self._stream})

    def raise_failure(self) -> None:
        """Raise what ended the decode thread, if it did not end by itself."""
        if self._failure is not None:
            raise self._failure

    # in the decode thread -----------------------------------------------------------------------
    def _decode(self, source: Source, slot: ClipSlot) -> None:
        try:
            source.run(
                sink=lambda picture: self._push(picture, slot), report=self._report, stop=self._stop
            )
            if not self._stop.is_set():
                self._hand_over(self._assembler.finish() or self._past, slot)
        except BaseException as error:  # carried to the loop and raised there, see raise_failure
            traceback.clear_frames(error.__traceback__)
            self._failure = error
        finally:
            slot.close()
            # Megabytes, and threads of FFmpeg. What else a session leaves is small, and in cycles
            # that are freed whenever the collector looks.
            del self._framer, self._assembler

    def _push(self, picture: Picture, slot: ClipSlot) -> None:
        self._pictures += 1
        for frame in self._framer.push(picture):
            clips = self._assemble(frame)
            if clips or self._is_filling:
                self.newest = frame
            if picture.is_past and self.is_live:
                self._past = clips[-1:] or self._past
            else:
                self._hand_over(clips or self._past, slot)
                self._past = []
        if self._past and not picture.is_past:  # also when that one is not on the sampling grid
            self._hand_over(self._past, slot)
            self._past = []

    def _assemble(self, frame: Frame) -> list[Clip]:
        clips: list[Clip] = []
        if frame.generation != self._generation:
            self._generation = frame.generation
            self._is_filling = True
            if not self.is_live:  # of a file nothing is left out, however short the part
                clips = self._assembler.finish()
        dropped = self._sampler.counts.dropped
        clips += self._assembler.push(
            frame,
            dropped=dropped - self._dropped_before,
            is_degraded=self._sampler.is_degraded,
        )
        self._dropped_before = dropped
        if not clips or not self._is_filling:
            self._say_how_full()
        return clips

    def _hand_over(self, clips: list[Clip], slot: ClipSlot) -> None:
        reading = self.reading
        for clip in clips:
            if self._is_filling:
                self._is_filling = self._is_live_unsaid = False
                self._announce(SourceState(state="live"))
            assemble_ms = (monotonic_ns() - clip.arrived_ns) / 1e6
            self._clips += 1
            is_skewed = reading is not None and reading.why == "skewed"
            slot.put(replace(clip, assemble_ms=assemble_ms, clock_skewed=is_skewed))
            if said := self._clock_watch.look(reading):
                self._announce(said)

    def _report(self, state: SourceState) -> None:
        """Pass on what the source says, except for what only the session can know."""
        if state.state == "live":  # said with the next frame, which may have to begin a new window
            self._is_live_unsaid = True
        elif state.state == "ended":  # said by the session, after the last clip was published
            self.farewell = state
        else:
            self._announce(state)

    def _say_how_full(self) -> None:
        """A camera needs seconds to fill a clip and says so; a file does not."""
        now_ns = monotonic_ns()
        is_due = self._is_filling and now_ns - self._said_filling_ns > _FILLING_PERIOD_NS
        if not self._is_live_unsaid and not is_due:
            return
        self._is_live_unsaid = False
        if not self._is_filling:
            self._announce(SourceState(state="live"))
        elif self.is_live:
            self._said_filling_ns = now_ns
            have, need = self._assembler.have, self._assembler.need
            self._announce(SourceState(state="live", reason="filling", have=have, need=need))
