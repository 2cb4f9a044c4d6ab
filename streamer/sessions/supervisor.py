"""Makes running sessions match the registered streams. Keeps nothing that a restart could lose.

A fresh lease means that a stream is served, by whomever; so a new supervisor adopts what runs, and
what died is opened again when its lease has run out. A stream that seems to kill the process of its
session is quarantined (`streamer.sessions.suspicion`).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Protocol

from streamer.clock import monotonic_ns
from streamer.errors import CapacityError, Conflict, NotFound, WorkerDied
from streamer.outage import Outage
from streamer.records import StreamRecord
from streamer.sessions.config import SupervisorConfig
from streamer.sessions.ending import Ending
from streamer.sessions.plan import Decision, Retries, Turns, decide, wanted
from streamer.sessions.suspicion import Suspicion
from streamer.sessions.unserved import Unserved
from streamer.store.protocol import Presence, Store

__all__ = ["SessionHost", "Supervisor"]

_LOG = logging.getLogger(__name__)
_PAGE = 1000


class SessionHost(Protocol):
    """Where sessions run: the same event loop, or a replica somewhere."""

    async def run(self, stream: str) -> Ending:
        """Run one session of this stream to its end. Cancellation ends the session.

        Raises:
            Conflict: somebody else holds the stream's lease.
            NotFound: the stream is no longer registered.
            WorkerDied: the process died in which it ran, with whatever else ran there.
        """


class Supervisor:
    """The reconcile loop.

    Args:
        owner: name of this process or replica, announced as `supervisor`.
    """

    def __init__(
        self,
        store: Store,
        *,
        host: SessionHost,
        owner: str,
        config: SupervisorConfig | None = None,
    ) -> None:
        self._store = store
        self._host = host
        self._config = config or SupervisorConfig()
        self._presence = Presence(kind="supervisor", replica=owner)
        self._retries = Retries(backoff=self._config.retry, healthy_s=self._config.healthy_s)
        self._turns = Turns(courtesy_s=self._config.poll_s)
        self._suspicion = Suspicion(self._config)
        self._unserved = Unserved(store, owner=owner, config=self._config)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._unwanted: dict[str, int] = {}
        self._outage = Outage(
            _LOG, lost="supervisor without the store", back="supervisor has the store again"
        )
        self._left_out: tuple[str, ...] = ()
        self._ended = asyncio.Event()

    @property
    def running(self) -> frozenset[str]:
        """Streams whose session this supervisor has open."""
        return frozenset(self._running)

    async def run(self) -> None:
        """Reconcile for ever. Cancellation ends all sessions and waits for them."""
        async with asyncio.TaskGroup() as group:
            seen = -1
            while True:
                try:
                    await self._store.announce(self._presence, ttl_s=self._config.presence_ttl_s)
                    await self._reconcile(group)
                    self._outage.went_well()
                    seen = await self._change(seen)
                except CapacityError as error:
                    self._outage.failed(error.message)
                    await asyncio.sleep(self._config.poll_s)

    async def _reconcile(self, group: asyncio.TaskGroup) -> None:
        # Leases before records: a session that ends in between then still seems to run, instead of
        # seeming to be missing from a registry that does not know its outcome yet.
        held = await self._store.lease_holders()
        records = await self._records()
        supervisors = len(await self._store.present(self._presence.kind))
        share = math.ceil(sum(map(wanted, records)) / max(1, supervisors))
        decision = self._decide(records, held=held, share=share, now_ns=monotonic_ns())
        self._apply(decision, group=group)
        await self._speak(records, decision)

    def _decide(
        self, records: Sequence[StreamRecord], *, held: Collection[str], share: int, now_ns: int
    ) -> Decision:
        self._retries.keep({record.stream for record in records})
        self._suspicion.look(records, held=held, running=self._running, now_ns=now_ns)
        waiting = self._retries.waiting(now_ns=now_ns)
        decision = decide(
            records,
            held=held,
            running=self._running,
            waiting={*waiting, *self._suspicion.convicts(now_ns=now_ns)},
            max_sessions=self._config.max_sessions,
        )
        ours = self._turns.take(
            decision.to_open, running=len(self._running), share=share, now_ns=now_ns
        )
        soon = {*waiting, *decision.to_open}
        admitted = self._suspicion.admit(ours, waiting=soon, now_ns=now_ns)
        kept_back = tuple(stream for stream in ours if stream not in admitted)
        return replace(decision, to_open=admitted, kept_back=kept_back)

    async def _speak(self, records: Sequence[StreamRecord], decision: Decision) -> None:
        """Say what is to be said of streams without a session, and set those free whose time in
        quarantine is over."""
        now_ns = monotonic_ns()
        for stream in self._suspicion.convicts(now_ns=now_ns):
            if await self._unserved.quarantine(stream):
                self._suspicion.quarantined(stream)
        await self._unserved.release(records)
        await self._unserved.tell(
            left_out=decision.left_out, on_probation=decision.kept_back, now_ns=now_ns
        )

    async def _records(self) -> list[StreamRecord]:
        records: list[StreamRecord] = []
        while True:
            after = records[-1].stream if records else ""
            page = await self._store.list_streams(after=after, limit=_PAGE)
            records += page
            if len(page) < _PAGE:
                return records

    def _apply(self, decision: Decision, *, group: asyncio.TaskGroup) -> None:
        now_ns = monotonic_ns()
        self._unwanted = {s: self._unwanted.get(s, now_ns) for s in decision.unwanted}
        for stream, since_ns in self._unwanted.items():
            session = self._running[stream]
            # Once: a second cancellation would cut short what it does to end in order.
            if now_ns - since_ns > self._config.cancel_after_s * 1e9 and not session.cancelling():
                _LOG.warning("session cancelled", extra={"stream": stream})
                session.cancel()
        if decision.left_out != self._left_out:
            self._left_out = decision.left_out
            _LOG.warning("streams without room", extra={"streams": len(decision.left_out)})
        for stream in decision.to_open:
            self._running[stream] = group.create_task(self._keep(stream), name=f"session {stream}")

    async def _change(self, seen: int) -> int:
        """Wait until the registry changed, a session ended, or it is time to look again."""
        ended = asyncio.ensure_future(self._ended.wait())
        changed = asyncio.ensure_future(
            self._store.wait_registry(seen=seen, timeout_s=self._config.poll_s)
        )
        try:
            await asyncio.wait({ended, changed}, return_when=asyncio.FIRST_COMPLETED)
            self._ended.clear()
            return changed.result() if changed.done() else seen
        finally:
            ended.cancel()
            changed.cancel()

    async def _keep(self, stream: str) -> None:
        began_ns = monotonic_ns()
        ending: Ending | None = None
        is_interrupted = False
        try:
            ending = await self._host.run(stream)
        except (Conflict, NotFound) as error:
            is_interrupted = True
            _LOG.info("session not opened", extra={"stream": stream, "error": error.message})
        except WorkerDied as error:
            is_interrupted = True  # what becomes of the stream is up to the suspicion
            self._suspicion.died(stream, now_ns=monotonic_ns())
            _LOG.warning("session lost", extra={"stream": stream, "error": error.message})
        except Exception:
            # Whatever broke one session must not take the others with it.
            _LOG.exception("session broke", extra={"stream": stream})
        finally:
            del self._running[stream]
            now_ns = monotonic_ns()
            if is_interrupted:
                self._retries.interrupted(stream, now_ns=now_ns)
            else:
                ran_s = (now_ns - began_ns) / 1e9
                self._retries.ended(stream, ending, ran_s=ran_s, now_ns=now_ns)
            self._ended.set()
