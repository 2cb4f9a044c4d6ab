"""A source in its thread, and conditions on what it said and showed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from rtsp_camera import LOOPBACK, RtspCamera

from streamer.backoff import Backoff
from streamer.errors import SourceError
from streamer.records import Picture, SourceState
from streamer.sources.rtsp import RtspSource
from streamer.sources.rtsp_config import RtspConfig

PATIENCE_S = 15.0
"""Nothing in these tests takes so long, even on a busy machine."""

FAST = RtspConfig(
    open_timeout_s=1.5,
    read_timeout_s=1.5,
    stall_s=0.5,
    unavailable=Backoff(first_s=0.1, cap_s=0.3),
    unusable=Backoff(first_s=0.2, factor=1, cap_s=0.2, jitter=0),
    denied=Backoff(first_s=0.1, factor=1, cap_s=0.1, jitter=0, max_tries=3),
)


class Watched:
    """Runs a source in a thread of its own and remembers what came out."""

    def __init__(self, source: RtspSource) -> None:
        self.source = source
        self.states: list[tuple[float, SourceState]] = []
        """With the monotonic second at which each was told."""
        self.pictures: list[Picture] = []
        """Without their images: those of FFmpeg are not to be kept."""
        self.sizes: list[tuple[int, int]] = []
        self.error: SourceError | None = None
        self.stop = threading.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run)

    def wait_for(self, condition: Callable[[], object]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, timeout=PATIENCE_S), self.states

    def wait_state(self, state: str, *, reason: str | None = None, after: int = 0) -> float:
        """Wait for a state told at position `after` or later; its time."""
        found: list[float] = []

        def told() -> bool:
            found[:] = [
                at
                for at, said in self.states[after:]
                if said.state == state and reason in (None, said.reason)
            ]
            return bool(found)

        self.wait_for(told)
        return found[0]

    def wait_pictures(self, count: int) -> None:
        """Wait for that many more pictures."""
        goal = len(self.pictures) + count
        self.wait_for(lambda: len(self.pictures) >= goal)

    def wait_end(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), self.states

    def end(self) -> float:
        """Stop it; seconds that took."""
        began = time.monotonic()
        self.stop.set()
        self.wait_end()
        return time.monotonic() - began

    def texts(self) -> str:
        """Everything it said to people."""
        return f"{self.source.name} {[said for _, said in self.states]} {self.error!r}"

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            self.source.run(sink=self._sink, report=self._report, stop=self.stop)
        except SourceError as error:
            self.error = error

    def _sink(self, picture: Picture) -> None:
        size = (picture.image.width, picture.image.height)
        with self._changed:
            self.sizes.append(size)
            self.pictures.append(replace(picture, image=None))
            self._changed.notify_all()

    def _report(self, state: SourceState) -> None:
        with self._changed:
            self.states.append((time.monotonic(), state))
            self._changed.notify_all()


@pytest.fixture
def config() -> RtspConfig:
    """Short times."""
    return FAST


@pytest.fixture
def watch() -> Iterator[Callable[..., Watched]]:
    """``watch(url, config=FAST)``: a started `Watched`, ended after the test."""
    started: list[Watched] = []

    def begin(url: str, *, config: RtspConfig = FAST) -> Watched:
        watched = Watched(RtspSource(url, policy=LOOPBACK, config=config))
        started.append(watched)
        watched.start()
        return watched

    yield begin
    for watched in started:
        watched.end()


@pytest.fixture
def camera() -> Iterator[Callable[..., RtspCamera]]:
    """``camera(fps=15, ...)``: a started camera, killed after the test."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(RtspCamera(**options))
