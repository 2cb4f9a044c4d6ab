"""Where an upload waits while it is worked on: a file without a name.

What has no name needs no cleaning up: the kernel takes the file back when it is closed, however
its process ended.
"""

from __future__ import annotations

import asyncio
import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from streamer.errors import CapacityError
from streamer.gateway.upload_errors import NoRoomOnDisk

__all__ = ["Spool", "opened_spool"]

_BLOCK = 1024 * 1024
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_RETRY_S = 30.0


class Spool:
    """Takes bytes; can then be opened by its path, in this process, as often as needed."""

    def __init__(self, file: IO[bytes]) -> None:
        self.size = 0
        """Bytes taken."""
        self._file = file
        self._block = bytearray()

    @property
    def path(self) -> Path:
        """Of this process only; each `open` of it begins at the first byte."""
        return Path(f"/proc/self/fd/{self._file.fileno()}")

    def head(self, count: int) -> bytes:
        """The first bytes, once everything was flushed."""
        with self.path.open("rb") as file:
            return file.read(count)

    async def write(self, data: bytes) -> None:
        """Raises `NoRoomOnDisk`."""
        self.size += len(data)
        self._block += data
        if len(self._block) >= _BLOCK:
            await self.flush()

    async def flush(self) -> None:
        """Hand everything to the system, in a thread. Raises `NoRoomOnDisk`."""
        block, self._block = self._block, bytearray()
        with _translated():
            await asyncio.to_thread(_write_all, self._file, block)


def _write_all(file: IO[bytes], block: bytearray) -> None:
    """A system that is short of room takes a part, and refuses only the next one."""
    left = memoryview(block)
    while left:
        left = left[file.write(left) :]


@contextmanager
def opened_spool(folder: str) -> Iterator[Spool]:
    """An empty one; its content is gone afterwards.

    Args:
        folder: on which file system; empty: the system's folder for temporary files.

    Raises:
        CapacityError: no file can be made there; `NoRoomOnDisk` when the disk is full.
    """
    with _translated():  # the opening only: what the reader raises is not the disk's
        file = tempfile.TemporaryFile(dir=folder or None, buffering=0)  # noqa: SIM115 - `with` below
    with file:
        yield Spool(file)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise NoRoomOnDisk(
                "The disk where uploads wait is full. Try again later.", _RETRY_S
            ) from error
        raise CapacityError(
            f"Uploads cannot be kept here now ({error.strerror}); an operator sets uploads.folder.",
            _RETRY_S,
        ) from error
