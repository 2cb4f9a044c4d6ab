"""A bounded ring of frames: the newest are kept, the oldest are overwritten and counted.

One thread puts, any thread takes. Nothing blocks: a reader that is too slow loses the oldest
frames and is told how many.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np

from streamer.frames.config import RingConfig
from streamer.records import Frame, Pixels

__all__ = ["FrameRing"]


class FrameRing:
    """Keeps the newest `capacity` frames in memory that is allocated once.

    A frame of another generation empties it: what it holds belongs to one line of time.
    """

    def __init__(self, config: RingConfig) -> None:
        shape = (config.capacity, config.crop, config.crop, 3)
        self._pixels: Pixels = np.zeros(shape, dtype=np.uint8)
        self._frames: list[Frame | None] = [None] * config.capacity
        self._lock = threading.Lock()
        self._put = 0
        self._first = 0
        self._taken = 0
        self._overwritten = 0
        self._generation: int | None = None

    def __len__(self) -> int:
        with self._lock:
            return self._put - self._first

    @property
    def generation(self) -> int | None:
        """Generation of the frames it holds; None while empty."""
        return self._generation

    @property
    def overwritten(self) -> int:
        """Frames overwritten (or emptied by a new generation) before anybody took them."""
        return self._overwritten

    def put(self, frame: Frame) -> None:
        """Copy a frame into the ring. Never blocks on readers.

        Raises:
            ValueError: the pixels are not uint8 `[crop, crop, 3]` of this ring.
        """
        expected = self._pixels.shape[1:]
        if frame.pixels.shape != expected or frame.pixels.dtype != np.uint8:
            raise ValueError(
                f"frame pixels are {frame.pixels.dtype} {list(frame.pixels.shape)};"
                f" this ring takes uint8 {list(expected)}"
            )
        with self._lock:
            if frame.generation != self._generation:
                self._forget_before(self._put)
                self._generation = frame.generation
            slot = self._put % len(self._frames)
            self._pixels[slot] = frame.pixels
            self._frames[slot] = replace(frame, pixels=self._pixels[slot])
            self._put += 1
            self._forget_before(self._put - len(self._frames))

    def take(self) -> list[Frame]:
        """Frames nobody took yet, oldest first; their pixels are copies."""
        with self._lock:
            frames = self._copy(self._taken, self._put)
            self._taken = self._put
            return frames

    def newest(self, count: int) -> list[Frame]:
        """The newest frames (at most `count`), oldest first, taken or not; copies."""
        with self._lock:
            return self._copy(max(self._first, self._put - max(0, count)), self._put)

    def _forget_before(self, position: int) -> None:
        if position > self._first:
            self._first = position
        if position > self._taken:
            self._overwritten += position - self._taken
            self._taken = position

    def _copy(self, start: int, stop: int) -> list[Frame]:
        found = (self._frames[n % len(self._frames)] for n in range(start, stop))
        return [replace(frame, pixels=frame.pixels.copy()) for frame in found if frame is not None]
