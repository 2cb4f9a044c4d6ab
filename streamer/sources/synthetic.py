"""A synthetic world played as a camera: first its recent past at once, then in real time."""

from __future__ import annotations

import logging
import math
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from streamer.clock import monotonic_ns, wall_ns
from streamer.errors import ConfigError
from streamer.records import ClockReading, Picture, SourceState
from streamer.sources.config import SyntheticConfig
from streamer.sources.query import (
    Options,
    parse_options,
    read_choice,
    read_integer,
    read_number,
)
from streamer.sources.source import Report, Sink
from streamer.worlds.registry import make_world
from streamer.worlds.world import Stage, World

__all__ = ["SyntheticOptions", "SyntheticSource", "parse_synthetic"]

_OPTIONS = ("seed", "fps", "size", "pace", "frames", "duration_s", "preroll_s")
_MAX_PICTURES = 10**12
_MAX_SIDE = 2048
# Further behind than this (a suspended process, a slow sink) pictures are left out, as a camera
# would do.
_LATE_S = 1.0
# Somebody set our wall clock by more than this: capture times follow, as those of a camera do.
_CLOCK_SET_NS = 500_000_000
# It runs on our own clock.
_READING = ClockReading(clock="media", is_believed=True, why="ok", offset_s=0.0, drift_ppm=0.0)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticOptions:
    """What the URL of a synthetic source says."""

    world: str
    """Name of the scene."""
    seed: int = 0
    stage: Stage = field(default_factory=Stage)
    is_realtime: bool = True
    """False: as fast as the sink takes it, nothing lost."""
    frames: int | None = None
    """Pictures after which it ends, those of the past included; None: never."""
    preroll_s: float = 16.0
    """Length of the past shown at once, seconds."""


def parse_synthetic(url: str, *, config: SyntheticConfig) -> SyntheticOptions:
    """``synthetic:<scene>?seed=1&fps=15&size=96`` (or ``size=160x90``, width first).

    Also `pace=fast` (no waiting), `frames=N` or `duration_s=S` (an end), `preroll_s=S`.

    Raises:
        ConfigError: unknown scene or option, or a value that cannot work.
    """
    scene, _, query = url.partition("?")
    options = parse_options(query, known=_OPTIONS)
    stage = _stage(options)
    parsed = SyntheticOptions(
        world=scene.partition(":")[2].strip("/"),
        seed=read_integer(options, "seed", default=0, low=0, high=2**31 - 1),
        stage=stage,
        is_realtime=read_choice(options, "pace", choices=("realtime", "fast")) == "realtime",
        frames=_frames(options, fps=stage.fps),
        preroll_s=read_number(options, "preroll_s", default=config.preroll_s, low=0, high=3600),
    )
    make_world(parsed.world, seed=parsed.seed)
    return parsed


class SyntheticSource:
    """A world as a `Source`; capture times run on the media clock.

    Args:
        now_ns: monotonic clock.
        wall: UTC nanoseconds now.
        wait: waits that long, seconds, or until the event is set, and says whether it is.
    """

    def __init__(
        self,
        options: SyntheticOptions,
        *,
        name: str,
        now_ns: Callable[[], int] = monotonic_ns,
        wall: Callable[[], int] = wall_ns,
        wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
    ) -> None:
        self.name = name
        self.live = options.is_realtime
        self.reading: ClockReading | None = _READING
        self._options = options
        self._now_ns = now_ns
        self._wall = wall
        self._wait = wait

    def run(self, *, sink: Sink, report: Report, stop: threading.Event) -> None:
        """Play until the end, or until `stop` is set. Raises nothing of its own."""
        options = self._options
        report(SourceState(state="starting", reason="opening"))
        world = make_world(options.world, seed=options.seed, stage=options.stage)
        preroll_ns = round(options.preroll_s * 1e9)
        start_ns, host_ns = self._now_ns() - preroll_ns, self._wall() - self._now_ns()
        report(SourceState(state="live"))
        i = 0
        while not stop.is_set() and (options.frames is None or i < options.frames):
            if options.is_realtime:
                i = self._due(i, start_ns=start_ns, stop=stop)
                if stop.is_set() or (options.frames is not None and i >= options.frames):
                    break
                host_ns = self._followed(host_ns)
            sink(self._picture(world, i, captured_ns=start_ns + host_ns))
            i += 1

    def _due(self, i: int, *, start_ns: int, stop: threading.Event) -> int:
        """Wait for picture `i`; says which one to show, a later one when much too late."""
        fps = self._options.stage.fps
        age_s = (self._now_ns() - start_ns) / 1e9
        early_s = i / fps - age_s
        if early_s > 0:
            self._wait(stop, early_s)
        elif i / fps > self._options.preroll_s and early_s < -_LATE_S:
            _log.debug("synthetic source skips pictures", extra={"late_s": -early_s})
            return math.floor(age_s * fps)
        return i

    def _followed(self, host_ns: int) -> int:
        """Wall clock minus monotonic clock: as before, unless one of them was set."""
        now_ns = self._wall() - self._now_ns()
        return now_ns if abs(now_ns - host_ns) > _CLOCK_SET_NS else host_ns

    def _picture(self, world: World, i: int, *, captured_ns: int) -> Picture:
        began_ns = self._now_ns()
        pixels = world.render(i)
        arrived_ns = self._now_ns()
        pts_s = i / self._options.stage.fps
        return Picture(
            image=pixels,
            pts_s=pts_s,
            captured_at_ns=captured_ns + round(pts_s * 1e9),
            arrived_ns=arrived_ns,
            clock="media",
            generation=0,
            index=i,
            decode_ms=(arrived_ns - began_ns) / 1e6,
            is_past=self._options.is_realtime and pts_s < self._options.preroll_s,
        )


def _stage(options: Options) -> Stage:
    fps = read_number(options, "fps", default=15.0, low=0.1, high=120.0)
    text = options.get("size", "96")
    found = re.fullmatch(r"(\d{2,4})(?:x(\d{2,4}))?", text)
    width, height = (int(side) for side in (found[1], found[2] or found[1])) if found else (0, 0)
    if not (16 <= width <= _MAX_SIDE and 16 <= height <= _MAX_SIDE):
        raise ConfigError(
            f"The source option size is {text!r}; write one side or WIDTHxHEIGHT, 16 to"
            f" {_MAX_SIDE} pixels each."
        )
    return Stage(height=height, width=width, fps=fps)


def _frames(options: Options, *, fps: float) -> int | None:
    if "frames" in options and "duration_s" in options:
        raise ConfigError("The source options frames and duration_s exclude each other; give one.")
    if "frames" in options:
        return read_integer(options, "frames", default=1, low=1, high=_MAX_PICTURES)
    if "duration_s" in options:
        return round(read_number(options, "duration_s", default=1, low=0.1, high=1e9) * fps)
    return None
