"""Picture -> pixels: upright, progressive, resized, centre-cropped, uint8 RGB.

Decoders apply no rotation and weave interlaced fields together; both are undone here. One
`VideoReformatter` per converter (about 15 MB each): a converter belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import av
import numpy as np
from av.filter import Graph
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter

from streamer.errors import SourceUnsupported
from streamer.frames.config import PixelConfig
from streamer.frames.orientation import Orientation, read_orientation
from streamer.records import Picture, Pixels

__all__ = ["PixelConverter", "upright_size"]

# A wider picture is trimmed before it is resized, so that 8000 x 16 pixels cannot become a giant.
_MAX_ASPECT = 4


class PixelConverter:
    """Converts pictures of any size and format to square uint8 RGB frames.

    Source: vjepa2 evals/video_classification_frozen/utils.py::EvalVideoTransform (c2963a4):
    short edge to ``int(crop * 256 / 224)``, then centre crop - differs in the interpolation
    (area instead of bilinear without anti-aliasing) and in working on uint8.
    """

    def __init__(self, config: PixelConfig) -> None:
        self._config = config
        self._reformatter = VideoReformatter()

    def convert(self, picture: Picture) -> Pixels:
        """Convert one picture.

        Args:
            picture: `image` is an `av.VideoFrame` or uint8 `[H, W, 3]` RGB.

        Returns:
            uint8 `[crop, crop, 3]` RGB, freshly allocated.

        Raises:
            SourceUnsupported: the picture has a format that cannot be converted.
        """
        image = picture.image
        with _translated():
            if isinstance(image, VideoFrame):
                return self._convert_frame(image)
            return self._resize(_from_array(image), orientation=Orientation())

    def _convert_frame(self, frame: VideoFrame) -> Pixels:
        orientation = read_orientation(frame)
        if frame.interlaced_frame:
            frame = _deinterlace(frame)
        return self._resize(frame, orientation=orientation)

    def _resize(self, frame: VideoFrame, *, orientation: Orientation) -> Pixels:
        if max(frame.width, frame.height) > _MAX_ASPECT * min(frame.width, frame.height):
            frame = self._trim(frame)
        width, height = _scaled(frame.width, frame.height, short_edge=self._config.short_edge)
        small = self._reformatter.reformat(
            frame, width=width, height=height, format="rgb24", interpolation="AREA"
        )
        # Turning the small square is cheaper than the picture, and the same: both are centred.
        square = _centre(_rgb(small), height=self._config.crop, width=self._config.crop)
        return np.ascontiguousarray(orientation.apply(square))

    def _trim(self, frame: VideoFrame) -> VideoFrame:
        whole = _rgb(self._reformatter.reformat(frame, format="rgb24"))
        longest = _MAX_ASPECT * min(frame.width, frame.height)
        trimmed = _centre(whole, height=min(frame.height, longest), width=min(frame.width, longest))
        return VideoFrame.from_ndarray(np.ascontiguousarray(trimmed), format="rgb24")


def upright_size(picture: Picture) -> tuple[int, int]:
    """Width and height of a picture as a viewer would see it, pixels."""
    image = picture.image
    if not isinstance(image, VideoFrame):
        height, width = image.shape[:2]
        return width, height
    if read_orientation(image).is_transposed:
        return image.height, image.width
    return image.width, image.height


def _from_array(image: Any) -> VideoFrame:
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3:
        raise SourceUnsupported("A picture must be an av.VideoFrame or uint8 [H, W, 3] RGB.")
    if image.shape[2] != 3 or 0 in image.shape:
        raise SourceUnsupported(f"A picture of shape {list(image.shape)} is not [H, W, 3] RGB.")
    return VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")


def _rgb(frame: VideoFrame) -> Pixels:
    return cast("Pixels", frame.to_ndarray())


def _scaled(width: int, height: int, *, short_edge: int) -> tuple[int, int]:
    if width <= height:
        return short_edge, max(short_edge, int(height * short_edge / width))
    return max(short_edge, int(width * short_edge / height)), short_edge


def _centre(pixels: Pixels, *, height: int, width: int) -> Pixels:
    top = round((pixels.shape[0] - height) / 2)
    left = round((pixels.shape[1] - width) / 2)
    return pixels[top : top + height, left : left + width]


def _deinterlace(frame: VideoFrame) -> VideoFrame:
    # From one picture alone: the sampler skips pictures, so a standing graph would take motion from
    # pictures a quarter of a second apart. Motion-adaptive filters (bwdif, yadif) take a single
    # picture for standing still and leave its fields woven; estdif works inside one field.
    graph = Graph()
    source = graph.add_buffer(
        width=frame.width,
        height=frame.height,
        format=frame.format,
        time_base=frame.time_base,
    )
    one_field = graph.add("estdif", "mode=frame:deint=all")
    sink = graph.add("buffersink")
    source.link_to(one_field)
    one_field.link_to(sink)
    graph.configure()
    graph.push(frame)
    graph.push(None)
    pulled = graph.pull()
    assert isinstance(pulled, VideoFrame)
    return pulled


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (av.FFmpegError, ValueError) as error:
        raise SourceUnsupported(
            f"A decoded picture cannot be converted to RGB ({error}); send 8- or 10-bit YUV,"
            " grey or RGB video."
        ) from error
