"""The pictures in Redis: an index in the order of putting, and bodies by number."""

from __future__ import annotations

from streamer.store.config import StoreConfig
from streamer.store.protocol import PictureKind, StoredPicture
from streamer.store.redis_answers import Word, accept, ms, text
from streamer.store.redis_connection import RedisConnection
from streamer.store.redis_keys import RedisKeys
from streamer.store.refusals import check_picture, no_picture

__all__ = ["RedisPictures"]

_MAX_NS = 10**20 - 1


class RedisPictures:
    """The picture methods of `streamer.store.protocol.Store`."""

    def __init__(
        self, connection: RedisConnection, *, keys: RedisKeys, config: StoreConfig
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._config = config

    async def put(
        self, stream: str, *, lease: str, kind: PictureKind, picture: StoredPicture, ttl_s: float
    ) -> None:
        check_picture(picture, self._config)
        answer = await self._connection.run(
            "put_picture",
            keys=[self._keys.lease(stream), *self._keys.pictures(stream, kind)],
            args=[
                *(lease, _digits(picture.captured_at_ns), picture.media_type, picture.body),
                *(ms(ttl_s), self._config.max_pictures),
            ],
        )
        accept(stream, answer)

    async def get(self, stream: str, kind: PictureKind, *, at_ns: int | None) -> StoredPicture:
        answer = await self._connection.run(
            "get_picture",
            keys=[self._keys.registry, *self._keys.pictures(stream, kind)],
            args=[stream, "" if at_ns is None else _digits(at_ns + 1)],
        )
        accept(stream, answer)
        if answer[0] == Word.MISSING:
            _, count, first, last = answer
            span = (int(first), int(last)) if count else None
            raise no_picture(stream, kind, at_ns=at_ns, count=count, span=span)
        _, captured, media_type, body = answer
        return StoredPicture(captured_at_ns=int(captured), media_type=text(media_type), body=body)


def _digits(ns: int) -> str:
    return f"{min(max(ns, 0), _MAX_NS):020d}"
