"""Pictures in, frames on the sampling grid out: sampler and converter together."""

from __future__ import annotations

from dataclasses import replace

from streamer.errors import SourceUnsupported
from streamer.frames.pixels import PixelConverter, upright_size
from streamer.frames.sampler import Pick, Sampler
from streamer.records import Frame, Picture

__all__ = ["Framer"]

_FAILURES_IN_A_ROW = 8
_SAME_ASPECT = 0.02


class Framer:
    """Makes the frames of one stream. Belongs to the decode thread.

    A picture of another shape starts a new generation; a rescaled one (what a browser does when
    its bandwidth changes) does not.

    Args:
        stream: name of the stream, written into each frame.
        fps: rate of the sampler's grid.
    """

    def __init__(
        self, *, stream: str, fps: float, sampler: Sampler, converter: PixelConverter
    ) -> None:
        self._stream = stream
        self._tick_s = 1.0 / fps
        self._sampler = sampler
        self._converter = converter
        self._last: Frame | None = None
        self._aspect: float | None = None
        self._failures = 0

    def push(self, picture: Picture) -> list[Frame]:
        """Frames that this picture brings: none, one, or repeats of the one before and then one.

        Raises:
            SourceUnsupported: several pictures in a row could not be converted.
        """
        self._follow_shape(picture)
        pick = self._sampler.push(picture)
        if pick is None:
            return []
        if self._last is not None and self._last.generation != pick.generation:
            self._last = None
        frames = self._repeats(pick.fill)
        made = self._make(picture, pick=pick)
        frames += self._repeats(1, after=len(frames)) if made is None else [made]
        self._last = frames[-1] if frames else None
        return frames

    def _follow_shape(self, picture: Picture) -> None:
        width, height = upright_size(picture)
        aspect = width / height
        if self._aspect is not None and abs(aspect / self._aspect - 1) > _SAME_ASPECT:
            self._sampler.restart()
        self._aspect = aspect

    def _make(self, picture: Picture, *, pick: Pick) -> Frame | None:
        try:
            pixels = self._converter.convert(picture)
        except SourceUnsupported:
            self._sampler.discard(is_bridged=self._last is not None)
            self._failures += 1
            if self._failures >= _FAILURES_IN_A_ROW:
                raise
            return None
        self._failures = 0
        return Frame(
            stream=self._stream,
            index=picture.index,
            tick=pick.tick,
            pts_s=pick.pts_s,
            captured_at_ns=picture.captured_at_ns,
            arrived_ns=picture.arrived_ns,
            clock=picture.clock,
            generation=pick.generation,
            filled=False,
            pixels=pixels,
            decode_ms=picture.decode_ms,
        )

    def _repeats(self, count: int, *, after: int = 0) -> list[Frame]:
        """Stand-ins for missed ticks: the last frame's pixels at the ticks' own times."""
        last = self._last
        if last is None:
            return []
        return [
            replace(
                last,
                tick=last.tick + n,
                pts_s=last.pts_s + n * self._tick_s,
                captured_at_ns=last.captured_at_ns + round(n * self._tick_s * 1e9),
                filled=True,
                decode_ms=0.0,
            )
            for n in range(after + 1, after + count + 1)
        ]
