"""Follows what the registry wants of a running session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from streamer.errors import CapacityError, NotFound
from streamer.outage import Outage
from streamer.records import Sampling, StreamRecord, StreamSpec
from streamer.sessions.ending import Ending
from streamer.store.protocol import Store

__all__ = ["Control", "needs_reopening"]

_LOG = logging.getLogger(__name__)
_REGISTRY = Outage(_LOG, lost="registry out of reach", back="registry reached again")
"""Of all sessions of this process."""
_REGISTRY_WAIT_S = 30.0


def needs_reopening(old: StreamSpec, new: StreamSpec) -> bool:
    """Whether only another session can do what is wanted now: horizons, mode and retention change
    from one clip to the next, but source, model and sampling shape the clips themselves."""
    return _shape(old) != _shape(new)


def _shape(spec: StreamSpec) -> tuple[str, str, Sampling]:
    return spec.source, spec.model, spec.sampling


class Control:
    """One running session's ear.

    Args:
        record: the stream as the session was opened with it.
        follow: takes each other record that the running session can follow.
        retry_s: how long to wait while the store is out of reach.
    """

    def __init__(
        self,
        store: Store,
        record: StreamRecord,
        *,
        follow: Callable[[StreamRecord], None],
        retry_s: float,
    ) -> None:
        self._store = store
        self._record = record
        self._follow = follow
        self._retry_s = retry_s

    async def run(self) -> Ending:
        """Until the session is to end; returns how. Cancellation is safe."""
        seen = -1
        while True:
            try:
                now = await self._store.wait_registry(seen=seen, timeout_s=_REGISTRY_WAIT_S)
                record = await self._store.get_stream(self._record.stream)
            except NotFound:
                return Ending.REPLACED
            except CapacityError as error:
                _REGISTRY.failed(error.message)
                await asyncio.sleep(self._retry_s)
                continue
            _REGISTRY.went_well()
            if (ending := self._take(record)) is not None:
                return ending
            seen = now  # not before the change was looked at: the store may be away by then

    def _take(self, record: StreamRecord) -> Ending | None:
        if record.created_ns != self._record.created_ns:  # deleted, and registered again
            return Ending.REPLACED
        if record.desired == "paused":
            return Ending.PAUSED
        if needs_reopening(self._record.spec, record.spec):
            return Ending.REPLACED
        if record.revision != self._record.revision:
            self._record = record
            self._follow(record)
        return None
