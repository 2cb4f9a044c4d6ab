"""How many samples an mp4 or mov file says it has, found without a library that believes it.

FFmpeg makes an index entry for each sample that a table promises, before anything is decoded. A
table that gives all samples one size promises billions in 20 bytes, and so does a fragment: a file
of 2 kB would fill the memory. Sources: ISO/IEC 14496-12, 8.7 and 8.8; libavformat/mov.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Final

__all__ = ["declared_samples", "is_mov"]

_FIRST: Final = frozenset(
    {
        *(b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"free", b"skip"),
        *(b"wide", b"pnot", b"junk", b"pict", b"sidx", b"uuid", b"udta"),
        *(b"jP  ", b"emsg", b"prft"),
    }
)
_MAX_INDEX_BYTES: Final = 64 * 1024 * 1024
_MAX_BOXES: Final = 1_000_000
_MAX_TABLES: Final = 10_000
"""Of one kind in one box; there is one per track."""
_SOUND_HANDLERS: Final = frozenset({b"soun", b"alis", b"url ", b"mdir", b"mdta"})


def is_mov(head: bytes) -> bool:
    """Whether a file that begins so (8 bytes) may be read as mp4 or mov."""
    return head[4:8] in _FIRST


def declared_samples(path: Path) -> int:
    """Samples for which a reader makes room, of all tracks and fragments; blocks.

    Every table counts, wherever it stands outside of the media data. Uncompressed sound does not:
    there FFmpeg goes by chunks.

    Raises:
        ValueError: more index than can be looked through, or a compressed one.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return sum(map(_samples, _indexes(file)))


def _indexes(file: IO[bytes]) -> Iterator[bytes]:
    """What is in the boxes at the top, but for the media data."""
    begin, end = 0, file.seek(0, 2)
    for _ in range(_MAX_BOXES):
        file.seek(begin)
        head = file.read(16)
        size = int.from_bytes(head[:4])
        if size == 1:
            size = int.from_bytes(head[8:16])
        elif size == 0:
            size = end - begin
        if len(head) < 8 or size < 8:
            return
        size = min(size, end - begin)
        if head[4:8] != b"mdat":
            if size > _MAX_INDEX_BYTES:
                raise ValueError("its index is too large")
            file.seek(begin)
            yield file.read(size)
        begin += size
    raise ValueError("it is in too many pieces")


def _samples(index: bytes) -> int:
    if b"cmov" in index:
        raise ValueError("its index is compressed")
    found = sum(_numbers(index, b"trun", at=8)) + sum(_tables(index))
    tracks = [track for name, track in _children(index) if name == b"trak"]
    return found - sum(sum(_tables(track)) for track in tracks if _is_uncompressed_sound(track))


def _is_uncompressed_sound(track: bytes) -> bool:
    """By the rule of libavformat. What it looks at must stand where it looks, and nowhere else
    something that says otherwise."""
    handler = _child(track, b"mdia", b"hdlr")
    times = _child(track, b"mdia", b"minf", b"stbl", b"stts")
    if handler is None or handler[16:20] != b"soun" or times is None:
        return False
    handlers = {track[i + 12 : i + 16] for i in _places(track, b"hdlr")}
    return (
        handlers <= _SOUND_HANDLERS
        and set(_numbers(track, b"stts", at=8)) == set(_numbers(track, b"stts", at=16)) == {1}
        and len(_places(track, b"trak")) == 1
    )


def _children(box: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and box of each."""
    begin = 16 if int.from_bytes(box[:4]) == 1 else 8
    while begin + 8 <= len(box):
        size = int.from_bytes(box[begin : begin + 4])
        if size < 8:
            return
        yield box[begin + 4 : begin + 8], box[begin : begin + size]
        begin += size


def _child(box: bytes, *path: bytes) -> bytes | None:
    found: bytes | None = box
    for name in path:
        found = None if found is None else dict(_children(found)).get(name)
    return found


def _tables(data: bytes) -> list[int]:
    return [n for name in (b"stsz", b"stz2") for n in _numbers(data, name, at=12)]


def _numbers(data: bytes, name: bytes, *, at: int) -> list[int]:
    """The number so many bytes after each name."""
    return [int.from_bytes(data[i + at : i + at + 4]) for i in _places(data, name)]


def _places(data: bytes, name: bytes) -> list[int]:
    found = [each.start() for each in islice(re.finditer(re.escape(name), data), _MAX_TABLES + 1)]
    if len(found) > _MAX_TABLES:
        raise ValueError("its index has too many tables")
    return found
