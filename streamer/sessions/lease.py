"""Holding on to a stream's lease while the store may be away for a moment."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator

from streamer.clock import monotonic_ns
from streamer.errors import CapacityError, LeaseLost
from streamer.outage import Outage
from streamer.store.protocol import Lease, Store

__all__ = ["keep_lease", "store_may_be_away"]

_LOG = logging.getLogger(__name__)
_STORE = Outage(_LOG, lost="store out of reach", back="store reached again")
"""Of all sessions of this process."""


async def keep_lease(store: Store, lease: Lease, *, ttl_s: float, every_s: float) -> None:
    """Renew it until it is lost: taken over, or run out. Cancellation is safe."""
    renewed_ns = monotonic_ns()
    with contextlib.suppress(LeaseLost):
        while monotonic_ns() - renewed_ns < ttl_s * 1e9:
            await asyncio.sleep(every_s)
            now_ns = monotonic_ns()
            with store_may_be_away():
                await store.renew_lease(lease, ttl_s=ttl_s)
                renewed_ns = now_ns


@contextlib.contextmanager
def store_may_be_away() -> Iterator[None]:
    """A store that restarts is no reason to end a session; the lease's age is."""
    try:
        yield
    except CapacityError as error:
        _STORE.failed(error.message)
    else:
        _STORE.went_well()
