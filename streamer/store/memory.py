"""The embedded store: one process, one event loop, nothing on disk.

Every method runs without an ``await`` between looking and writing, so that calls are atomic. A
restart means loss, which the new `epoch` says. See `Logbook` for what is kept of deleted streams.
"""

from __future__ import annotations

import json
import secrets
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from streamer.clock import monotonic_ns, wall_ns
from streamer.records import Outcome, StreamRecord, StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.expiring import Expiring
from streamer.store.logbook import Logbook
from streamer.store.pictures import Pictures
from streamer.store.protocol import Lease, LogSlice, PictureKind, Presence, StoredPicture
from streamer.store.refusals import (
    check_body,
    check_picture,
    check_revision,
    lease_held,
    lease_lost,
    no_room,
    other_spec,
    unknown_stream,
)
from streamer.store.signals import Signals

__all__ = ["MemoryStore"]

_REGISTRY = "registry"
_LOG = "log:"


class MemoryStore:
    """`streamer.store.protocol.Store` in memory; that protocol documents the methods.

    Args:
        config: bounds.
        monotonic: nanoseconds, for leases, TTLs and age.
        wall: UTC nanoseconds, for `StreamRecord.created_ns`.
        epoch: name of this life of the log; None draws one.
    """

    def __init__(
        self,
        config: StoreConfig | None = None,
        *,
        monotonic: Callable[[], int] = monotonic_ns,
        wall: Callable[[], int] = wall_ns,
        epoch: str | None = None,
    ) -> None:
        self._config = StoreConfig() if config is None else config
        self._wall = wall
        self._epoch = secrets.token_hex(3) if epoch is None else epoch
        self._records: dict[str, StreamRecord] = {}
        self._ids: list[str] = []
        self._changes = 0
        self._leases: Expiring[Lease] = Expiring(now=monotonic)
        self._statuses: Expiring[str] = Expiring(now=monotonic)
        self._presences: Expiring[Presence] = Expiring(now=monotonic)
        self._logs = Logbook(config=self._config, now=monotonic)
        self._pictures = Pictures(config=self._config, now=monotonic)
        self._signals = Signals()

    async def epoch(self) -> str:
        return self._epoch

    # registry -----------------------------------------------------------------------------------
    async def create_stream(self, stream: str, spec: StreamSpec) -> tuple[StreamRecord, bool]:
        known = self._records.get(stream)
        if known is not None:
            if known.spec != spec:
                raise other_spec(stream)
            return known, False
        if len(self._records) >= self._config.max_streams:
            raise no_room(self._config)
        insort(self._ids, stream)
        self._logs.open(stream, retain_s=spec.retain_s)
        record = StreamRecord(stream=stream, spec=spec, created_ns=self._wall())
        return self._put(record), True

    async def get_stream(self, stream: str) -> StreamRecord:
        return self._record(stream)

    async def list_streams(self, *, after: str = "", limit: int = 1000) -> list[StreamRecord]:
        begin = bisect_right(self._ids, after)
        return [self._records[stream] for stream in self._ids[begin : begin + max(0, limit)]]

    async def change_stream(
        self, stream: str, spec: StreamSpec, *, if_revision: int | None = None
    ) -> StreamRecord:
        known = self._record(stream)
        check_revision(stream, known.revision, wanted=if_revision)
        if spec.retain_s != known.spec.retain_s:
            self._logs.open(stream, retain_s=spec.retain_s)
        return self._change(replace(known, spec=spec, outcome=""))

    async def set_desired(self, stream: str, desired: Literal["live", "paused"]) -> StreamRecord:
        return self._change(replace(self._record(stream), desired=desired, outcome=""))

    async def finish_stream(
        self, stream: str, *, lease: str, outcome: Outcome, if_revision: int | None = None
    ) -> None:
        record = self._record(stream)
        self._check_lease(stream, lease)
        check_revision(stream, record.revision, wanted=if_revision)
        self._change(replace(record, outcome=outcome))

    async def delete_stream(self, stream: str) -> None:
        self._record(stream)
        del self._records[stream]
        del self._ids[bisect_left(self._ids, stream)]
        self._leases.drop(stream)
        self._statuses.drop(stream)
        self._pictures.drop_stream(stream)
        self._logs.retire(stream)
        self._registry_changed()

    async def wait_registry(self, *, seen: int, timeout_s: float) -> int:
        await self._signals.wait_until(
            _REGISTRY, lambda: self._changes != seen, timeout_s=timeout_s
        )
        return self._changes

    # leases -------------------------------------------------------------------------------------
    async def acquire_lease(self, stream: str, *, owner: str, ttl_s: float) -> Lease:
        self._record(stream)
        held = self._leases.get(stream)
        if held is not None:
            raise lease_held(stream, held.owner)
        lease = Lease(stream=stream, token=secrets.token_hex(8), owner=owner)
        self._leases.put(stream, lease, ttl_s=ttl_s)
        return lease

    async def renew_lease(self, lease: Lease, *, ttl_s: float) -> None:
        self._check_lease(lease.stream, lease.token)
        self._leases.put(lease.stream, lease, ttl_s=ttl_s)

    async def release_lease(self, lease: Lease) -> None:
        held = self._leases.get(lease.stream)
        if held is not None and held.token == lease.token:
            self._leases.drop(lease.stream)

    async def lease_holders(self) -> dict[str, str]:
        return {stream: lease.owner for stream, lease in self._leases.items()}

    # status and presence ------------------------------------------------------------------------
    async def put_status(
        self, stream: str, status: dict[str, Any], *, lease: str, ttl_s: float
    ) -> None:
        self._check_lease(stream, lease)
        self._statuses.put(stream, json.dumps(status), ttl_s=ttl_s)

    async def get_status(self, stream: str) -> dict[str, Any] | None:
        text = self._statuses.get(stream)
        if text is None:
            return None
        status: dict[str, Any] = json.loads(text)
        return status

    async def announce(self, presence: Presence, *, ttl_s: float) -> None:
        self._presences.put(f"{presence.kind}/{presence.replica}", presence, ttl_s=ttl_s)

    async def present(self, kind: str) -> list[Presence]:
        return [each for _, each in self._presences.items() if each.kind == kind]

    # pictures -----------------------------------------------------------------------------------
    async def put_picture(
        self, stream: str, *, lease: str, kind: PictureKind, picture: StoredPicture, ttl_s: float
    ) -> None:
        self._check_lease(stream, lease)
        check_picture(picture, self._config)
        self._pictures.put(stream, kind, picture, ttl_s=ttl_s)

    async def get_picture(
        self, stream: str, kind: PictureKind, *, at_ns: int | None = None
    ) -> StoredPicture:
        self._record(stream)
        return self._pictures.get(stream, kind, at_ns=at_ns)

    # event log ----------------------------------------------------------------------------------
    async def append(self, stream: str, *, lease: str, body: bytes) -> int:
        self._check_lease(stream, lease)
        check_body(body, self._config)
        seq = self._logs.append(stream, body)
        self._signals.fire(_LOG + stream)
        return seq

    async def read(self, stream: str, *, after_seq: int, limit: int = 256) -> LogSlice:
        log = self._logs.get(stream)
        return LogSlice(
            epoch=self._epoch,
            first_seq=log.first_seq,
            head_seq=log.head_seq,
            entries=log.after(after_seq, limit=max(0, limit)),
        )

    async def wait(self, stream: str, *, after_seq: int, timeout_s: float) -> int:
        log = self._logs.get(stream)
        await self._signals.wait_until(
            _LOG + stream, lambda: log.head_seq > after_seq, timeout_s=timeout_s
        )
        return log.head_seq

    # inside -------------------------------------------------------------------------------------
    def _record(self, stream: str) -> StreamRecord:
        if stream not in self._records:
            raise unknown_stream(stream)
        return self._records[stream]

    def _change(self, record: StreamRecord) -> StreamRecord:
        known = self._records[record.stream]
        if record == known:
            return known
        return self._put(replace(record, revision=known.revision + 1))

    def _put(self, record: StreamRecord) -> StreamRecord:
        self._records[record.stream] = record
        self._registry_changed()
        return record

    def _registry_changed(self) -> None:
        self._changes += 1
        self._signals.fire(_REGISTRY)

    def _check_lease(self, stream: str, token: str) -> None:
        held = self._leases.get(stream)
        if held is None or held.token != token:
            raise lease_lost(stream)
