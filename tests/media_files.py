"""Small video files of every awkward kind, made with PyAV when a test runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "GREY",
    "RED",
    "concatenated",
    "corner",
    "write_sound",
    "write_video",
]

Image = NDArray[np.uint8]
RED = (230, 20, 20)
GREY = (110, 110, 110)
_CLOCK = Fraction(1, 1000)


def corner(*, height: int = 48, width: int = 64, color: tuple[int, int, int] = RED) -> Image:
    """Grey with a coloured quarter at the top left."""
    image = np.full((height, width, 3), GREY, np.uint8)
    image[: height // 2, : width // 2] = color
    return image


def write_video(
    path: Path,
    images: Iterable[Image],
    *,
    times_ms: Sequence[int] | None = None,
    fps: int = 10,
    codec: str = "libx264",
    pixel_format: str = "yuv420p",
    rotation: int = 0,
    options: dict[str, str] | None = None,
    metadata: dict[str, str] | None = None,
) -> Path:
    """Encode RGB images; `rotation` goes into the display matrix, degrees counter-clockwise."""
    images = list(images)
    times_ms = times_ms or [round(n * 1000 / fps) for n in range(len(images))]
    with av.open(str(path), "w") as container:
        container.metadata.update(metadata or {})
        stream = container.add_stream(codec, rate=fps, options=options or {})
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt = pixel_format
        stream.codec_context.time_base = _CLOCK
        stream.codec_context.thread_count = 1
        if rotation:
            stream.set_display_rotation(rotation)
        for image, time_ms in zip(images, times_ms, strict=True):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format=pixel_format)
            frame.pts, frame.time_base = time_ms, _CLOCK
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def write_sound(path: Path) -> Path:
    """A file with sound and no pictures."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def concatenated(path: Path, *parts: Path) -> Path:
    """Transport streams glued together, as recorders do: sizes and times may jump."""
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    return path
