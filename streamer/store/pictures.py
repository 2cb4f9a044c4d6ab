"""Pictures of an embedded store, and what bounds them. No I/O; O(pictures of the stream) a call."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from streamer.store.config import StoreConfig
from streamer.store.protocol import PictureKind, StoredPicture
from streamer.store.refusals import no_picture

__all__ = ["Pictures"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    album: tuple[str, PictureKind]
    end_ns: int
    picture: StoredPicture


class Pictures:
    """The newest pictures of each stream and kind, in the order of putting.

    Args:
        config: bounds.
        now: monotonic nanoseconds.
    """

    def __init__(self, *, config: StoreConfig, now: Callable[[], int]) -> None:
        self.num_bytes = 0
        """Of all bodies kept."""
        self._config = config
        self._now = now
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self._albums: defaultdict[tuple[str, PictureKind], list[int]] = defaultdict(list)
        self._number = 0

    def put(self, stream: str, kind: PictureKind, picture: StoredPicture, *, ttl_s: float) -> None:
        """Keep one more; the one put longest ago goes when there are too many."""
        album = stream, kind
        self._drop_ended(album)
        self._number += 1
        self._kept[self._number] = _Kept(
            album=album, end_ns=self._now() + int(ttl_s * 1e9), picture=picture
        )
        self._albums[album].append(self._number)
        self.num_bytes += len(picture.body)
        if len(self._albums[album]) > self._config.max_pictures:
            self._drop(self._albums[album][0])
        while self.num_bytes > self._config.max_pictures_bytes:
            self._drop(next(iter(self._kept)))

    def get(self, stream: str, kind: PictureKind, *, at_ns: int | None) -> StoredPicture:
        """The one put last, or the newest one captured by `at_ns`. Raises `NotFound`."""
        album = stream, kind
        self._drop_ended(album)
        found = [self._kept[number].picture for number in self._albums.get(album, ())]
        if at_ns is None and found:
            return found[-1]
        early = [each for each in found if at_ns is not None and each.captured_at_ns <= at_ns]
        if early:
            return max(reversed(early), key=lambda picture: picture.captured_at_ns)
        times = [picture.captured_at_ns for picture in found]
        span = (min(times), max(times)) if times else None
        raise no_picture(stream, kind, at_ns=at_ns, count=len(found), span=span)

    def drop_stream(self, stream: str) -> None:
        """Its stream was deleted."""
        for kind in get_args(PictureKind):
            for number in list(self._albums.get((stream, kind), ())):
                self._drop(number)

    def _drop_ended(self, album: tuple[str, PictureKind]) -> None:
        """Of this album all; of the others as long as those put first have ended."""
        now_ns = self._now()
        for number in list(self._albums.get(album, ())):
            if self._kept[number].end_ns <= now_ns:
                self._drop(number)
        while self._kept and next(iter(self._kept.values())).end_ns <= now_ns:
            self._drop(next(iter(self._kept)))

    def _drop(self, number: int) -> None:
        kept = self._kept.pop(number)
        self.num_bytes -= len(kept.picture.body)
        self._albums[kept.album].remove(number)
        if not self._albums[kept.album]:
            del self._albums[kept.album]
