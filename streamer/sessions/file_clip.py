"""One clip out of a video file, made the way that streams make theirs."""

from __future__ import annotations

import math
import threading

from streamer.clips.assembler import ClipAssembler
from streamer.clips.config import ClipConfig
from streamer.errors import ConfigError
from streamer.frames.config import PixelConfig, SamplerConfig
from streamer.frames.framer import Framer
from streamer.frames.pixels import PixelConverter
from streamer.frames.sampler import Sampler
from streamer.records import Clip, Picture
from streamer.sources.file import FileSource

__all__ = ["read_clip"]


def read_clip(
    source: FileSource,
    *,
    start_s: float,
    fps: float,
    frames: int,
    crop: int,
    tubelet: int,
    stop: threading.Event | None = None,
) -> Clip:
    """The clip that begins `start_s` after the first picture. Blocks: decodes as far as that.

    A file that ends before the clip is full gives a padded one, first frame repeated in front.

    Args:
        fps: sampling rate.
        frames: in the clip, a multiple of `tubelet`.
        crop: pixels per side.
        stop: may be set in another thread, which ends the decoding early.

    Raises:
        ConfigError: numbers that do not work, or nothing left after `start_s`.
        SourceError: the file cannot be read as video.
    """
    if not (math.isfinite(start_s) and start_s >= 0):
        raise ConfigError(f"The start is {start_s} s; it must be 0 or more.")
    if not (math.isfinite(fps) and fps > 0):
        raise ConfigError(f"fps is {fps}; it must be above 0.")
    full = threading.Event() if stop is None else stop
    collector = _Collector(
        full, start_s=start_s, fps=fps, frames=frames, crop=crop, tubelet=tubelet
    )
    source.run(sink=collector.push, report=lambda state: None, stop=full)
    return collector.clip(source.name)


class _Collector:
    def __init__(
        self,
        full: threading.Event,
        *,
        start_s: float,
        fps: float,
        frames: int,
        crop: int,
        tubelet: int,
    ) -> None:
        self._full = full
        config = ClipConfig(frames=frames, fps=fps, stride_s=frames / fps, tubelet=tubelet)
        self._assembler = ClipAssembler(config, stream="file")
        sampler = Sampler(SamplerConfig(fps=fps))
        converter = PixelConverter(PixelConfig(crop=crop))
        self._framer = Framer(stream="file", fps=fps, sampler=sampler, converter=converter)
        self._start_s = start_s
        self._first_s: float | None = None
        self._clips: list[Clip] = []

    def push(self, picture: Picture) -> None:
        pts_s = picture.pts_s or 0.0
        if self._first_s is None:
            self._first_s = pts_s
        if self._full.is_set() or pts_s - self._first_s < self._start_s - 1e-6:
            return
        for frame in self._framer.push(picture):
            self._clips += self._assembler.push(frame)
        if self._clips:
            self._full.set()

    def clip(self, name: str) -> Clip:
        clips = self._clips or self._assembler.finish()
        if not clips:
            raise ConfigError(f"{name} has no pictures left after {self._start_s:g} s.")
        return clips[0]
