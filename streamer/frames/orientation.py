"""How a picture has to be turned before a person would call it upright."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import cast

from av.sidedata.sidedata import SideDataContainer, Type
from av.video.frame import VideoFrame

from streamer.records import Pixels

__all__ = ["Orientation", "read_orientation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Orientation:
    """One of the eight ways to lay a picture down: transpose first, then flip."""

    is_transposed: bool = False
    is_flipped_x: bool = False
    is_flipped_y: bool = False

    def apply(self, pixels: Pixels) -> Pixels:
        """Turn `[H, W, 3]` upright; returns a view."""
        if self.is_transposed:
            pixels = pixels.swapaxes(0, 1)
        if self.is_flipped_x:
            pixels = pixels[:, ::-1]
        if self.is_flipped_y:
            pixels = pixels[::-1]
        return pixels


def read_orientation(frame: VideoFrame) -> Orientation:
    """Orientation from the display matrix of a frame, to the nearest quarter turn.

    The matrix maps a source point to ``x' = a x + c y, y' = b x + d y`` (y down).
    """
    # The stubs of PyAV 18 call the container a single SideData.
    side_data = cast("SideDataContainer", frame.side_data)
    matrix = side_data.get(Type.DISPLAYMATRIX)
    if matrix is None:
        return Orientation()
    values = struct.unpack_from("=9i", bytes(matrix))
    a, b, c, d = values[0], values[1], values[3], values[4]
    if abs(b) + abs(c) > abs(a) + abs(d):
        return Orientation(is_transposed=True, is_flipped_x=c < 0, is_flipped_y=b < 0)
    return Orientation(is_flipped_x=a < 0, is_flipped_y=d < 0)
