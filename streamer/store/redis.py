"""The store in a Redis or Valkey server that all processes of the service share.

Each process opens its own. What must be atomic is one Lua script (`streamer.store.redis_scripts`).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from streamer.clock import wall_ns
from streamer.records import Outcome, StreamRecord, StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.protocol import (
    Lease,
    LogEntry,
    LogSlice,
    PictureKind,
    Presence,
    StoredPicture,
)
from streamer.store.redis_answers import Word, accept, ms, text
from streamer.store.redis_connection import RedisConnection
from streamer.store.redis_keys import RedisKeys
from streamer.store.redis_life import Life, SeenLife
from streamer.store.redis_news import RedisNews
from streamer.store.redis_pictures import RedisPictures
from streamer.store.redis_records import dump_presence, dump_record, load_presence, load_record
from streamer.store.refusals import (
    check_body,
    check_revision,
    lease_held,
    no_room,
    other_spec,
)

__all__ = ["RedisStore"]

_MAX_CURSOR = 2**53
"""Numbers in Lua are exact up to here."""


class RedisStore:
    """`streamer.store.protocol.Store` in Redis; that protocol documents the methods.

    Every method may also raise `CapacityError` while the server is out of reach or refuses.
    Nothing connects before the first call; the event loop of that call is the store's. `close` when
    done.

    Args:
        config: with a `url`.
        wall: UTC nanoseconds, for `StreamRecord.created_ns`.
    """

    def __init__(self, config: StoreConfig, *, wall: Callable[[], int] = wall_ns) -> None:
        self._config = config
        self._wall = wall
        self._keys = RedisKeys(config.prefix)
        self._connection = RedisConnection(config)
        self._news = RedisNews(self._connection, home=self._keys.changes, greet=self.epoch)
        self._pictures = RedisPictures(self._connection, keys=self._keys, config=config)
        self._seen = SeenLife()

    @property
    def connection(self) -> RedisConnection:
        """For checks at start."""
        return self._connection

    async def close(self) -> None:
        """Idempotent."""
        await self._news.close()
        await self._connection.close()

    async def epoch(self) -> str:
        answer = await self._connection.run("epoch", keys=self._keys.life, args=self._words())
        return self._learn(answer)

    # registry -----------------------------------------------------------------------------------
    async def create_stream(self, stream: str, spec: StreamSpec) -> tuple[StreamRecord, bool]:
        keys = self._keys
        registered, wanted = dump_record(
            StreamRecord(stream=stream, spec=spec, created_ns=self._wall())
        )
        answer = await self._connection.run(
            "create",
            keys=[
                *(keys.registry, keys.wanted, keys.ids, keys.changes, keys.life[0], keys.deleted),
                *(keys.forgotten, keys.head(stream), keys.events(stream)),
            ],
            args=[
                stream,
                registered,
                wanted,
                self._config.max_streams,
                ms(spec.retain_s),
                secrets.token_hex(4),
            ],
        )
        if answer[0] == Word.FULL:
            raise no_room(self._config)
        record = load_record(stream, answer[1], answer[2])
        if record.spec != spec:
            raise other_spec(stream)
        return record, answer[0] == Word.OK

    async def get_stream(self, stream: str) -> StreamRecord:
        keys = [self._keys.registry, self._keys.wanted]
        return _record(stream, await self._connection.run("get", keys=keys, args=[stream]))

    async def list_streams(self, *, after: str = "", limit: int = 1000) -> list[StreamRecord]:
        keys = [self._keys.registry, self._keys.wanted, self._keys.ids]
        found = await self._connection.run("list", keys=keys, args=[after, max(0, limit)])
        return [load_record(text(found[i]), *found[i + 1 : i + 3]) for i in range(1, len(found), 3)]

    async def change_stream(
        self, stream: str, spec: StreamSpec, *, if_revision: int | None = None
    ) -> StreamRecord:
        keys = self._keys
        while True:  # each round more means that somebody else got through
            found = await self._connection.run(
                "get", keys=[keys.registry, keys.wanted], args=[stream]
            )
            known = _record(stream, found)
            check_revision(stream, known.revision, wanted=if_revision)
            registered = found[1]
            if known.spec != spec:
                registered, _ = dump_record(replace(known, spec=spec))
            answer = await self._connection.run(
                "change_spec",
                keys=[
                    *(keys.registry, keys.wanted, keys.changes),
                    *(keys.head(stream), keys.events(stream)),
                ],
                args=[
                    *(stream, found[1], registered, ms(spec.retain_s)),
                    "" if if_revision is None else if_revision,
                ],
            )
            if answer[0] != Word.STALE:
                return _record(stream, answer)

    async def set_desired(self, stream: str, desired: Literal["live", "paused"]) -> StreamRecord:
        keys = [self._keys.registry, self._keys.wanted, self._keys.changes]
        answer = await self._connection.run("set_desired", keys=keys, args=[stream, desired])
        return _record(stream, answer)

    async def finish_stream(
        self, stream: str, *, lease: str, outcome: Outcome, if_revision: int | None = None
    ) -> None:
        keys = [self._keys.registry, self._keys.wanted, self._keys.changes]
        answer = await self._connection.run(
            "finish",
            keys=[*keys, self._keys.lease(stream)],
            args=[stream, lease, outcome, "" if if_revision is None else if_revision],
        )
        accept(stream, answer)
        if answer[0] == Word.STALE:
            check_revision(stream, int(answer[1]), wanted=if_revision)

    async def delete_stream(self, stream: str) -> None:
        keys, config = self._keys, self._config
        answer = await self._connection.run(
            "delete",
            keys=[
                *(keys.registry, keys.wanted, keys.ids, keys.changes, keys.deleted),
                *(keys.forgotten, keys.lease(stream), keys.status(stream)),
                *keys.pictures(stream, "snapshot"),
                *keys.pictures(stream, "latent"),
            ],
            args=[stream, config.max_deleted_logs, config.max_deleted, keys.begin],
        )
        accept(stream, answer)

    async def wait_registry(self, *, seen: int, timeout_s: float) -> int:
        return await self._news.wait(
            self._keys.changes,
            look=self._changes,
            is_news=lambda counter: counter != seen,
            timeout_s=timeout_s,
        )

    async def _changes(self) -> int:
        return int(await self._connection.get(self._keys.changes) or 0)

    # leases -------------------------------------------------------------------------------------
    async def acquire_lease(self, stream: str, *, owner: str, ttl_s: float) -> Lease:
        lease = Lease(stream=stream, token=secrets.token_hex(8), owner=owner)
        answer = await self._connection.run(
            "acquire",
            keys=[self._keys.registry, self._keys.lease(stream)],
            args=[stream, f"{lease.token} {owner}", ms(ttl_s)],
        )
        if answer[0] == Word.HELD:
            raise lease_held(stream, _owner(answer[1]))
        accept(stream, answer)
        return lease

    async def renew_lease(self, lease: Lease, *, ttl_s: float) -> None:
        keys = [self._keys.lease(lease.stream)]
        answer = await self._connection.run("renew", keys=keys, args=[lease.token, ms(ttl_s)])
        accept(lease.stream, answer)

    async def release_lease(self, lease: Lease) -> None:
        keys = [self._keys.lease(lease.stream)]
        await self._connection.run("release", keys=keys, args=[lease.token])

    async def lease_holders(self) -> dict[str, str]:
        keys = [self._keys.ids]
        found = await self._connection.run("holders", keys=keys, args=[self._keys.begin])
        pairs = zip(found[1::2], found[2::2], strict=True)
        return {text(stream): _owner(lease) for stream, lease in pairs}

    # status and presence ------------------------------------------------------------------------
    async def put_status(
        self, stream: str, status: dict[str, Any], *, lease: str, ttl_s: float
    ) -> None:
        answer = await self._connection.run(
            "put_status",
            keys=[self._keys.lease(stream), self._keys.status(stream)],
            args=[lease, json.dumps(status), ms(ttl_s)],
        )
        accept(stream, answer)

    async def get_status(self, stream: str) -> dict[str, Any] | None:
        found = await self._connection.get(self._keys.status(stream))
        if found is None:
            return None
        status: dict[str, Any] = json.loads(found)
        return status

    async def announce(self, presence: Presence, *, ttl_s: float) -> None:
        await self._connection.run(
            "announce",
            keys=self._keys.presence(presence.kind),
            args=[presence.replica, dump_presence(presence), ms(ttl_s)],
        )

    async def present(self, kind: str) -> list[Presence]:
        answer = await self._connection.run("present", keys=self._keys.presence(kind))
        return sorted(map(load_presence, answer[1:]), key=lambda presence: presence.replica)

    # pictures -----------------------------------------------------------------------------------
    async def put_picture(
        self, stream: str, *, lease: str, kind: PictureKind, picture: StoredPicture, ttl_s: float
    ) -> None:
        await self._pictures.put(stream, lease=lease, kind=kind, picture=picture, ttl_s=ttl_s)

    async def get_picture(
        self, stream: str, kind: PictureKind, *, at_ns: int | None = None
    ) -> StoredPicture:
        return await self._pictures.get(stream, kind, at_ns=at_ns)

    # event log ----------------------------------------------------------------------------------
    async def append(self, stream: str, *, lease: str, body: bytes) -> int:
        check_body(body, self._config)
        keys = self._keys
        answer = await self._connection.run(
            "append",
            keys=[keys.lease(stream), keys.head(stream), keys.events(stream), *keys.life],
            args=[lease, body, self._config.max_events, *self._words()],
        )
        accept(stream, answer)
        self._learn(answer)
        return int(answer[1])

    async def read(self, stream: str, *, after_seq: int, limit: int = 256) -> LogSlice:
        answer = await self._connection.run(
            "read",
            keys=[self._keys.head(stream), self._keys.events(stream), *self._keys.life],
            args=[min(after_seq, _MAX_CURSOR), max(0, limit), *self._words()],
        )
        accept(stream, answer)
        return LogSlice(
            epoch=self._learn(answer),
            first_seq=answer[1],
            head_seq=answer[2],
            entries=tuple(_entry(*event) for event in answer[3]),
        )

    async def wait(self, stream: str, *, after_seq: int, timeout_s: float) -> int:
        async def head() -> int:
            keys = [self._keys.head(stream), *self._keys.life]
            answer = await self._connection.run("head", keys=keys, args=self._words())
            accept(stream, answer)
            self._learn(answer)
            return int(answer[1])

        return await self._news.wait(
            self._keys.events(stream),
            look=head,
            is_news=lambda seq: seq > after_seq,
            timeout_s=timeout_s,
        )

    # inside -------------------------------------------------------------------------------------
    def _words(self) -> tuple[str | int, ...]:
        """What we saw, and a name for the epoch that begins if that is lost."""
        seen = self._seen.newest
        return seen.epoch, seen.began_ms, seen.server, seen.appends, secrets.token_hex(4)

    def _learn(self, answer: list[Any]) -> str:
        """The epoch, from the end of an answer."""
        epoch, began_ms, server, appends = answer[-4:]
        life = Life(epoch=text(epoch), began_ms=int(began_ms), server=text(server), appends=appends)
        self._seen.saw(life)
        return life.epoch


def _record(stream: str, answer: list[Any]) -> StreamRecord:
    accept(stream, answer)
    return load_record(stream, answer[1], answer[2])


def _entry(event_id: bytes, fields: list[bytes]) -> LogEntry:
    return LogEntry(seq=int(event_id.partition(b"-")[0]), body=fields[3])


def _owner(lease: bytes) -> str:
    return text(lease).partition(" ")[2]
