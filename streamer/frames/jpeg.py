"""Frames as small JPEGs: the quality follows the size, so that a bound in bytes is kept.

FFmpeg's own encoder through PyAV, about 1 ms at 256 pixels; no other picture library is needed.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import av
from av.codec.context import CodecContext, Flags
from av.video.codeccontext import VideoCodecContext

from streamer.records import Pixels

__all__ = ["JpegEncoder"]

_STEPS: Final = (3, 5, 8, 12, 20, 31)
"""FFmpeg's quantiser scale, best first."""
_ROOMY: Final = 0.5
"""A picture below this part of the bound lets the next one be a step better."""


class JpegEncoder:
    """Remembers which quality fitted last. Not thread-safe.

    Args:
        max_bytes: of one picture.
    """

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._step = 0

    def encode(self, pixels: Pixels) -> bytes | None:
        """The best JPEG that fits; None when not even the worst does.

        Args:
            pixels: `uint8 [H, W, 3]` RGB, H and W even.
        """
        for step in range(self._step, len(_STEPS)):
            body = _jpeg(pixels, scale=_STEPS[step])
            if len(body) <= self._max_bytes:
                is_roomy = len(body) < _ROOMY * self._max_bytes
                self._step = max(0, step - 1) if is_roomy else step
                return body
        return None


def _jpeg(pixels: Pixels, *, scale: int) -> bytes:
    context = CodecContext.create("mjpeg", "w")
    assert isinstance(context, VideoCodecContext)
    context.height, context.width = pixels.shape[:2]
    context.pix_fmt = "yuvj420p"
    context.time_base = Fraction(1, 1)
    context.thread_count = 1
    context.flags |= Flags.bitexact  # else the encoder's version is written into each picture
    context.qmin = context.qmax = scale
    frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
    full = frame.reformat(format="yuvj420p", dst_color_range="JPEG")
    return b"".join(bytes(packet) for packet in context.encode(full))
