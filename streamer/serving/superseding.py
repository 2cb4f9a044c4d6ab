"""Which rollouts are unfinished, so that a newer clip can cut them short."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Unfinished"]


class Unfinished:
    """Flags of the rollouts accepted and not done yet, those that wait for the device included.

    Belongs to one event loop; only the flags are read in other threads.
    """

    def __init__(self) -> None:
        self._flags: set[tuple[str, int, threading.Event]] = set()

    def __len__(self) -> int:
        return len(self._flags)

    @contextmanager
    def rollout(self, *, stream: str, clip: int) -> Iterator[threading.Event]:
        """For as long as one lasts: the flag that is set once it is superseded."""
        flag = threading.Event()
        entry = (stream, clip, flag)
        self._flags.add(entry)
        try:
            yield flag
        finally:
            self._flags.discard(entry)

    def supersede(self, *, stream: str, clip: int) -> None:
        """Set the flag of this clip's rollout; nothing happens when there is none (any more)."""
        # Two sessions of one stream may overlap for the life of a lease, so there may be two.
        for its_stream, its_clip, flag in self._flags:
            if (its_stream, its_clip) == (stream, clip):
                flag.set()
