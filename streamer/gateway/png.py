"""RGB pixels as a PNG, by the standard library alone. Cells may be drawn larger than a pixel."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final

__all__ = ["encode_png", "encode_strip"]

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_RGB8: Final = b"\x08\x02\x00\x00\x00"
_NONE, _UP = b"\x00", b"\x02"
_WHITE: Final = b"\xff\xff\xff"
_LEVEL: Final = 6


def encode_png(pixels: bytes, *, rows: int, columns: int, scale: int = 1) -> bytes:
    """One picture.

    Args:
        pixels: `uint8 [rows, columns, 3]` RGB.
        scale: each pixel becomes a square of so many.
    """
    return encode_strip([pixels], rows=rows, columns=columns, scale=scale)


def encode_strip(
    panels: Sequence[bytes], *, rows: int, columns: int, scale: int = 1, rule: int = 0
) -> bytes:
    """Pictures of one size side by side.

    Args:
        panels: each `uint8 [rows, columns, 3]` RGB; at least one.
        scale: each pixel becomes a square of so many.
        rule: width of the white line between two of them, in pixels of the result.
    """
    repeated = _UP + bytes(3 * _width(len(panels), columns=columns, scale=scale, rule=rule))
    lines = []
    for row in range(rows):
        lines.append(_NONE + _line(panels, row, columns=columns, scale=scale, rule=rule))
        lines += [repeated] * (scale - 1)
    width = len(repeated) // 3
    head = struct.pack(">II", width, rows * scale) + _RGB8
    data = zlib.compress(b"".join(lines), _LEVEL)
    return _SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _width(count: int, *, columns: int, scale: int, rule: int) -> int:
    return count * columns * scale + (count - 1) * rule


def _line(panels: Sequence[bytes], row: int, *, columns: int, scale: int, rule: int) -> bytes:
    size = columns * 3
    return (_WHITE * rule).join(
        _stretched(panel[row * size : (row + 1) * size], scale) for panel in panels
    )


def _stretched(line: bytes, scale: int) -> bytes:
    if scale == 1:
        return line
    return b"".join(line[i : i + 3] * scale for i in range(0, len(line), 3))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
