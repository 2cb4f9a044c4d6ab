"""What a supervisor says of streams that no session speaks for: quarantined, or without room.

Only the holder of a stream's lease may append to its log. The supervisor takes the lease for as
long as it takes to say it, and leaves the stream alone when somebody else has it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Any

from streamer.clock import wall_ns
from streamer.errors import Conflict, LeaseLost, NotFound
from streamer.records import SourceState, StreamRecord
from streamer.sessions.announcer import state_body
from streamer.sessions.config import SupervisorConfig
from streamer.store.protocol import Lease, Store

__all__ = ["Unserved"]

_LOG = logging.getLogger(__name__)
_LEASE_S = 5.0
_LOG_END = 10**15 - 1
_AT_ONCE = 50
"""Streams that are told about in one go; the others wait for the next."""
_PATIENCE_NS = 3_000_000_000
"""A stream may be without a session for a moment before anybody is told."""
_NO_ROOM = SourceState(
    state="starting",
    reason="no_capacity",
    detail="All sessions that the service may run are taken; the stream begins when one is free.",
)
_ON_PROBATION = SourceState(
    state="starting",
    reason="probation",
    detail="The process that ran the stream died more than once. Streams are opened one after the"
    " other until the one that kills it is found.",
)


class Unserved:
    """Speaks for them, each thing once. Remembers only what it has said.

    Args:
        owner: name of this process or replica, for people.
    """

    def __init__(self, store: Store, *, owner: str, config: SupervisorConfig) -> None:
        self._store = store
        self._owner = owner
        self._config = config
        self._since_ns: dict[tuple[str, str], int] = {}
        self._told: set[tuple[str, str]] = set()

    async def quarantine(self, stream: str) -> bool:
        """Leave the stream alone for `SupervisorConfig.quarantine_s`, and say why.

        Cancellation: safe; at worst it was said and not done.

        Returns:
            False when somebody else has the stream now.

        Raises:
            CapacityError: the store is out of reach.
        """
        config = self._config
        detail = (
            f"The process that ran this stream died {config.max_deaths} times within"
            f" {config.deaths_s:g} s, the last time while this stream alone was on probation. It is"
            f" tried again after {config.quarantine_s:g} s, or at once when it is set live."
        )
        state = SourceState(
            state="failed", reason="quarantined", detail=detail, retry_in_s=config.quarantine_s
        )
        try:
            async with self._leased(stream) as lease:
                await self._append(lease, state)
                # Its time to live is the sentence: whoever finds it gone sets the stream free.
                await self._store.put_status(
                    stream,
                    _status(state, until_ns=wall_ns() + round(config.quarantine_s * 1e9)),
                    lease=lease.token,
                    ttl_s=config.quarantine_s,
                )
                await self._store.finish_stream(stream, lease=lease.token, outcome="quarantined")
        except NotFound:
            return True
        except (Conflict, LeaseLost):
            return False
        _LOG.warning("stream quarantined", extra={"stream": stream, "for_s": config.quarantine_s})
        return True

    async def release(self, records: Iterable[StreamRecord]) -> None:
        """Set those free whose time is over. Raises `CapacityError`; cancellation is safe."""
        for record in records:
            if record.outcome != "quarantined":
                continue
            if await self._store.get_status(record.stream) is None:
                await self._set_free(record.stream)

    async def _set_free(self, stream: str) -> None:
        try:
            async with self._leased(stream) as lease:
                await self._store.finish_stream(stream, lease=lease.token, outcome="")
        except (Conflict, LeaseLost, NotFound):
            return
        _LOG.info("quarantine over", extra={"stream": stream})

    async def tell(
        self, *, left_out: Collection[str], on_probation: Collection[str], now_ns: int
    ) -> None:
        """Say of each stream that waits why it does, once it has waited for a moment.

        Raises `CapacityError`; cancellation is safe.
        """
        states = {
            **{(stream, _NO_ROOM.reason): _NO_ROOM for stream in left_out},
            **{(stream, _ON_PROBATION.reason): _ON_PROBATION for stream in on_probation},
        }
        self._since_ns = {key: self._since_ns.get(key, now_ns) for key in states}
        self._told &= states.keys()
        due = [
            key
            for key, since_ns in self._since_ns.items()
            if key not in self._told and now_ns - since_ns >= _PATIENCE_NS
        ]
        for key in due[:_AT_ONCE]:
            await self._tell(key[0], states[key])
            self._told.add(key)

    async def _tell(self, stream: str, state: SourceState) -> None:
        try:
            # Another service on the same store may have said it.
            if await self._last_reason(stream) != state.reason:
                async with self._leased(stream) as lease:
                    await self._append(lease, state)
        except (Conflict, LeaseLost, NotFound):
            return  # somebody serves it now, or it is gone

    async def _last_reason(self, stream: str) -> str:
        log = await self._store.read(stream, after_seq=_LOG_END, limit=1)
        last = await self._store.read(stream, after_seq=max(0, log.head_seq - 1), limit=1)
        return "".join(str(json.loads(entry.body).get("reason", "")) for entry in last.entries)

    async def _append(self, lease: Lease, state: SourceState) -> None:
        body = state_body(lease.stream, state, time_ns=wall_ns())
        await self._store.append(lease.stream, lease=lease.token, body=body)

    @asynccontextmanager
    async def _leased(self, stream: str) -> AsyncIterator[Lease]:
        lease = await self._store.acquire_lease(stream, owner=self._owner, ttl_s=_LEASE_S)
        try:
            yield lease
        finally:
            await self._store.release_lease(lease)


def _status(state: SourceState, *, until_ns: int) -> dict[str, Any]:
    return {
        "state": state.state,
        "reason": state.reason,
        "detail": state.detail,
        "until_ns": until_ns,
    }
