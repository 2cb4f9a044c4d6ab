"""Frames in a row -> clips. Sans-I/O: no clock, no thread; whoever calls it owns it.

Its window is the bounded ring of the live line: the newest T frames stay, the oldest one makes room
for the next, and nothing else on the way keeps frames.

`Clip.assemble_ms` is left at 0, for there is no clock here; the caller who has one fills it in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from streamer.clips.config import ClipConfig
from streamer.records import Clip, Frame

__all__ = ["ClipAssembler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    frame: Frame
    dropped: int
    """Lost right before this frame."""


class ClipAssembler:
    """A window over the sampling grid: full for the first time after T frames, then every stride.

    Frames of a new generation start a new window, so a clip never mixes two. Frames lost on the
    way here (ticks missing within a generation) are bridged by repetition up to
    `bridge_limit_s` and counted as dropped and filled; after a longer hole the window fills anew.

    Args:
        stream: name of the stream, written into each clip.
    """

    def __init__(self, config: ClipConfig, *, stream: str) -> None:
        self._config = config
        self._stream = stream
        self._held: deque[_Held] = deque(maxlen=config.frames)
        self._until_next = config.frames
        self._made = 0
        self._has_clip = False
        self._is_degraded = False

    @property
    def have(self) -> int:
        """Frames collected towards the first clip of this generation, at most `need`."""
        return len(self._held)

    @property
    def need(self) -> int:
        """Frames in a clip."""
        return self._config.frames

    def push(self, frame: Frame, *, dropped: int = 0, is_degraded: bool = False) -> list[Clip]:
        """Take the next frame.

        Args:
            frame: of this stream; ticks rise within a generation.
            dropped: pictures lost since the frame before (not those sampled out).
            is_degraded: the source is slower than the sampling grid.

        Returns:
            The clips that end with it: none or one; more when lost frames were bridged.

        Raises:
            ValueError: another stream's frame, or ticks that do not rise.
        """
        if frame.stream != self._stream:
            raise ValueError(f"frame of stream {frame.stream!r} in assembler of {self._stream!r}")
        self._is_degraded = is_degraded
        clips: list[Clip] = []
        for bridge in self._bridges(frame):
            clips += self._hold(_Held(frame=bridge, dropped=1))
        return clips + self._hold(_Held(frame=frame, dropped=dropped))

    def finish(self) -> list[Clip]:
        """End of a file, or of a generation in it: one padded clip if it was too short for any
        other, else nothing."""
        if self._has_clip or not self._held:
            return []
        return [self._clip(padded=self._config.frames - len(self._held))]

    def _bridges(self, frame: Frame) -> list[Frame]:
        """Stand-ins for lost ticks; empties the window where time broke."""
        if not self._held:
            return []
        last = self._held[-1].frame
        lost = frame.tick - last.tick - 1
        if frame.generation != last.generation or lost > self._config.bridge_ticks:
            self._held.clear()
            self._has_clip = False
            self._until_next = self._config.frames
            return []
        if lost < 0:
            raise ValueError(f"tick {frame.tick} after tick {last.tick} in one generation")
        return [self._repeat(last, ticks=n) for n in range(1, lost + 1)]

    def _repeat(self, frame: Frame, *, ticks: int) -> Frame:
        later_s = ticks / self._config.fps
        return replace(
            frame,
            tick=frame.tick + ticks,
            pts_s=frame.pts_s + later_s,
            captured_at_ns=frame.captured_at_ns + round(later_s * 1e9),
            filled=True,
        )

    def _hold(self, held: _Held) -> list[Clip]:
        self._held.append(held)
        self._until_next -= 1
        if self._until_next:
            return []
        self._until_next = self._config.stride_ticks
        return [self._clip(padded=0)]

    def _clip(self, *, padded: int) -> Clip:
        first, last = self._held[0].frame, self._held[-1].frame
        pixels = [first.pixels] * padded + [held.frame.pixels for held in self._held]
        clip = Clip(
            stream=self._stream,
            index=self._made,
            frames=np.stack(pixels),
            start_ns=first.captured_at_ns,
            end_ns=last.captured_at_ns,
            fps=self._config.fps,
            first_frame=first.index,
            last_frame=last.index,
            last_tick=last.tick,
            dropped=sum(held.dropped for held in self._held),
            filled=sum(held.frame.filled for held in self._held),
            padded=padded,
            clock=last.clock,
            generation=last.generation,
            arrived_ns=last.arrived_ns,
            decode_ms=last.decode_ms,
            degraded_fps=self._is_degraded,
        )
        self._made += 1
        self._has_clip = True
        return clip
