"""The greatest seq that this process saw of each stream, to notice a log that went backwards."""

from __future__ import annotations

from collections import OrderedDict

__all__ = ["RedisHeads"]

_MAX_STREAMS = 10_000


class RedisHeads:
    """Bounded: the stream not used for longest is forgotten first.

    A server may come back without its newest events (a power cut, a fail-over). Then it would give
    their numbers again under the same epoch. Whoever asks it for a stream therefore says what it
    saw before it asked; a head below that begins a new epoch.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[str, int]] = OrderedDict()

    def seen(self, stream: str) -> tuple[str, int]:
        """Epoch and seq; ``("", 0)`` when nothing was seen."""
        return self._seen.get(stream, ("", 0))

    def saw(self, stream: str, *, epoch: str, seq: int) -> None:
        known_epoch, known_seq = self.seen(stream)
        self._seen[stream] = (epoch, max(seq, known_seq) if epoch == known_epoch else seq)
        self._seen.move_to_end(stream)
        if len(self._seen) > _MAX_STREAMS:
            self._seen.popitem(last=False)
