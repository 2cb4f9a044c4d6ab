"""Closes the episodes of surprise that nobody else will close any more, and tells which event was
appended although its answer was lost."""

from __future__ import annotations

import asyncio
import logging

from streamer.clock import format_utc, wall_ns
from streamer.errors import CapacityError, LeaseLost, NotFound
from streamer.events.episodes import (
    CloseReason,
    closing_body,
    has_anticipation,
    speaks_of_episode,
    unclosed,
)
from streamer.events.schema import retained_body
from streamer.outage import Outage
from streamer.store.protocol import Lease, LogEntry, LogSlice, Store

__all__ = ["EpisodeKeeper"]

_LOG = logging.getLogger(__name__)
_CLOSED = Outage(_LOG, lost="episodes not looked at yet", back="episodes looked at")
"""Of all sessions of this process."""
_PAGE = 256
_CLIPS = 100
"""An open episode is told of within so many clips: `SurpriseConfig.update_clips` at its largest."""
_LOG_END = 10**15 - 1
"""After every seq there will be."""


class EpisodeKeeper:
    """Trusts the log and nothing else: what it speaks of as open is open.

    Args:
        lease: of the stream, held by this session.
    """

    def __init__(self, store: Store, *, lease: Lease) -> None:
        self._store = store
        self._lease = lease
        self._begun_seq: int | None = None
        """Head of the log when it was first looked at: before it is what other sessions said."""

    async def close_open(self, *, reason: CloseReason) -> None:
        """Append the end of each episode that is open. Cancellation may leave some open.

        Raises:
            LeaseLost: the stream is no longer ours.
            CapacityError: the store is out of reach; call again.
        """
        for episode in unclosed(await self._tail()).values():
            body = retained_body(closing_body(episode, reason=reason, time_ns=wall_ns()))
            await self._store.append(self._lease.stream, lease=self._lease.token, body=body)
            facts = {"episode": episode.episode, "reason": reason}
            _LOG.info("episode closed", extra={"stream": self._lease.stream} | facts)

    async def close_at_last(self, *, reason: CloseReason) -> None:
        """The same, however long the store is out of reach; the lease ends that. Raises
        `LeaseLost`."""
        while True:
            try:
                await self.close_open(reason=reason)
                _CLOSED.went_well()
                return
            except CapacityError as error:
                _CLOSED.failed(error.message)
                await asyncio.sleep(error.retry_after_s)

    async def recover(self, *, after_seq: int) -> bool:
        """An answer was lost: close what may have begun, or gone on, unheard.

        Args:
            after_seq: the newest anticipation that was heard of; 0: none was.

        Returns:
            True when the stream has no open episode now, whatever it was thought to have; False
            when the log says nothing that was not heard. Errors and cancellation as `close_open`.
        """
        after_seq = max(after_seq, self._begun_seq or 0)
        news = await self._read(after_seq=after_seq)
        if not speaks_of_episode(news.entries, after_seq=after_seq):
            return False
        await self.close_open(reason="restart")
        return True

    async def has_event(self, *, end_ns: int, after_seq: int) -> bool:
        """An answer was lost: whether the log has the anticipation of the clip that ends then.

        Args:
            after_seq: as for `recover`. Errors and cancellation as there, too.
        """
        news = await self._read(after_seq=max(after_seq, self._begun_seq or 0))
        return has_anticipation(news.entries, capture_time=format_utc(end_ns))

    async def _tail(self) -> list[LogEntry]:
        """The end of the log, as far back as what is open must have been told of. Mostly that is
        one page; a camera that comes and goes fills many with its states alone."""
        tail: list[LogEntry] = []
        head_seq = (await self._read(after_seq=_LOG_END)).head_seq
        if self._begun_seq is None:
            self._begun_seq = head_seq
        from_seq = head_seq + 1
        while True:
            after_seq = max(0, from_seq - 1 - _PAGE)
            page = await self._read(after_seq=after_seq)
            tail = [each for each in page.entries if not tail or each.seq < from_seq] + tail
            from_seq = after_seq + 1
            clips = sum(b'"anticipation"' in entry.body for entry in tail)
            if from_seq <= page.first_seq or clips >= _CLIPS:
                return tail

    async def _read(self, *, after_seq: int) -> LogSlice:
        try:
            return await self._store.read(self._lease.stream, after_seq=after_seq, limit=_PAGE)
        except NotFound as error:  # a store that lost everything
            raise LeaseLost(f"Stream {self._lease.stream} is gone from the store.") from error
