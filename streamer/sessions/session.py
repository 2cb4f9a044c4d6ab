"""One live stream, from its source to clips in flight.

A session owns the stream's lease for as long as it runs and does these at once: keep the lease,
follow what the registry wants, say how it is doing, and carry clips through the pipeline, one
ahead of the other. The source decodes in a thread of its own (`streamer.sessions.intake`).
Whichever of them is over first ends the session.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from streamer.clock import monotonic_ns
from streamer.errors import (
    CapacityError,
    ConfigError,
    Conflict,
    LeaseLost,
    ModelError,
    NotFound,
    SourceError,
    StreamerError,
)
from streamer.records import ModelInfo, Outcome, SourceState, StreamRecord
from streamer.sessions.announcer import Announcer
from streamer.sessions.carrier import Carrier
from streamer.sessions.config import SessionConfig
from streamer.sessions.control import Control
from streamer.sessions.ending import Ending, first_of
from streamer.sessions.episodes import EpisodeKeeper
from streamer.sessions.intake import Intake, SourceOpener
from streamer.sessions.lease import keep_lease, store_may_be_away
from streamer.sessions.pipeline import Pipeline
from streamer.sessions.reporter import Reporter
from streamer.sessions.snapshots import Snapshots
from streamer.store.protocol import Lease, Store
from streamer.telemetry import Meter, NullMeter

__all__ = ["Session"]

_LOG = logging.getLogger(__name__)


class Session:
    """Runs one registered stream.

    Args:
        record: the stream as registered.
        model: the model that `pipeline` serves; its crop and tubelet shape the clips.
        open_source: URL -> source, within the policy; called in a thread.
        owner: name of this process or replica, for people.
    """

    def __init__(
        self,
        record: StreamRecord,
        *,
        store: Store,
        pipeline: Pipeline,
        model: ModelInfo,
        open_source: SourceOpener,
        owner: str,
        config: SessionConfig | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._record = record
        self._store = store
        self._pipeline = pipeline
        self._model = model
        self._open_source = open_source
        self._owner = owner
        self._config = config or SessionConfig()
        self._meter = meter or NullMeter()
        self.lease: Lease | None = None
        """Held since the beginning of `run`; whoever learns for certain that this process died may
        release it."""

    async def run(self) -> Ending:
        """Run until the source ends, the lease is lost or the registry wants something else.

        Cancellation stops the decode thread, releases the lease and loses the clips in flight.

        Raises:
            Conflict: another session holds the lease.
            NotFound: the stream is no longer registered.
            ExceptionGroup: a part of the session broke in a way nobody expected, or the store did.
        """
        self.lease = lease = await self._store.acquire_lease(
            self._record.stream, owner=self._owner, ttl_s=self._config.lease_ttl_s
        )
        _LOG.info("session opened", extra={"stream": lease.stream, "owner": self._owner})
        try:
            ending = await self._own(lease)
        finally:
            with store_may_be_away():
                await self._store.release_lease(lease)
        _LOG.info("session over", extra={"stream": lease.stream, "ending": ending.value})
        return ending

    async def _own(self, lease: Lease) -> Ending:
        announcer = Announcer(self._store, lease=lease)
        announcer.report(SourceState(state="starting", reason="opening"))
        try:
            try:
                ending = await self._run_parts(lease, announcer)
            except ConfigError as error:  # the sampling does not fit the model
                announcer.report(_failed(error))
                ending = Ending.FAILED
            return await self._conclude(lease, announcer, ending=ending)
        except Exception:
            # Re-raised for the supervisor, which logs it and tries again; viewers are told here.
            announcer.report(
                SourceState(
                    state="reconnecting",
                    reason="internal",
                    detail="An internal error ended the session; it is opened again.",
                )
            )
            with store_may_be_away(), contextlib.suppress(LeaseLost):
                await announcer.flush()
            raise

    async def _run_parts(self, lease: Lease, announcer: Announcer) -> Ending:
        intake = Intake(
            self._record,
            model=self._model,
            report=announcer.report_from_thread,
            config=self._config,
        )
        episodes = EpisodeKeeper(self._store, lease=lease)
        carrier = Carrier(
            self._record.spec,
            lease=lease,
            pipeline=self._pipeline,
            teller=announcer,
            episodes=episodes,
            config=self._config,
            meter=self._meter,
        )
        reporter = Reporter(
            self._store,
            lease=lease,
            announcer=announcer,
            intake=intake,
            carrier=carrier,
            config=self._config,
            meter=self._meter,
        )
        snapshots = Snapshots(
            self._store,
            lease=lease,
            intake=intake,
            stride_s=self._record.spec.sampling.stride_s,
            config=self._config,
            meter=self._meter,
        )
        control = self._control(carrier, reporter)
        try:
            return await first_of(
                self._keep_lease(lease),
                control.run(),
                announcer.run(),
                reporter.run(),
                self._carry_all(intake, carrier, announcer, episodes),
                *([snapshots.run()] if self._config.snapshots else []),
            )
        finally:
            await self._stop(intake, lease)
            reporter.tell_meter()
            carrier.tell_closed()

    async def _stop(self, intake: Intake, lease: Lease) -> None:
        """The stream is ours until its decode thread is over, which may take longer than a lease
        lives."""
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(self._keep_lease(lease))
            await intake.stop()
            keeping.cancel()

    async def _keep_lease(self, lease: Lease) -> Ending:
        config = self._config
        await keep_lease(self._store, lease, ttl_s=config.lease_ttl_s, every_s=config.renew_s)
        return Ending.LEASE_LOST

    def _control(self, carrier: Carrier, reporter: Reporter) -> Control:
        def follow(record: StreamRecord) -> None:
            self._record = record
            carrier.change(record.spec)
            reporter.follow(record.revision)

        reporter.follow(self._record.revision)
        return Control(self._store, self._record, follow=follow, retry_s=self._config.renew_s)

    async def _carry_all(
        self, intake: Intake, carrier: Carrier, announcer: Announcer, episodes: EpisodeKeeper
    ) -> Ending:
        await episodes.close_at_last(reason="restart")
        ending = Ending.ENDED
        try:
            self._check_model()
            clips = await intake.start(self._open_source)
            if intake.is_live:
                await carrier.carry_live(clips)
            else:
                await carrier.carry_file(clips)
            intake.raise_failure()
            last = intake.farewell
        except (SourceError, ModelError, ConfigError) as error:
            ending, last = Ending.FAILED, _failed(error)
        await episodes.close_at_last(reason="stopped")
        announcer.report(last)
        return ending

    def _check_model(self) -> None:
        wanted = self._record.spec.model
        if wanted not in ("", self._model.name):
            raise ConfigError(
                f"The stream asks for model {wanted!r}; this service runs {self._model.name!r}."
            )

    async def _conclude(self, lease: Lease, announcer: Announcer, *, ending: Ending) -> Ending:
        """Say how it ended, as far as the stream is still ours to speak for."""
        episodes = EpisodeKeeper(self._store, lease=lease)
        if ending is Ending.REPLACED:
            with store_may_be_away(), contextlib.suppress(LeaseLost):
                await episodes.close_open(reason="stopped")
        if ending in (Ending.LEASE_LOST, Ending.REPLACED):
            return ending
        if ending is Ending.PAUSED:
            announcer.report(SourceState(state="paused", reason="requested"))
        end_ns = monotonic_ns() + round(self._config.lease_ttl_s * 1e9)
        while True:
            try:
                await episodes.close_open(reason="stopped")
                return await self._write_ending(lease, announcer, ending=ending)
            except (LeaseLost, NotFound):
                return Ending.LEASE_LOST
            except CapacityError:
                # A store that is away for a moment must not have a file run once more.
                if monotonic_ns() > end_ns:
                    raise
                await asyncio.sleep(self._config.renew_s)

    async def _write_ending(self, lease: Lease, announcer: Announcer, *, ending: Ending) -> Ending:
        await announcer.flush()
        if ending is Ending.PAUSED:
            return ending
        outcome: Outcome = "ended" if ending is Ending.ENDED else "failed"
        record = await self._store.get_stream(lease.stream)
        if record.outcome != outcome and record.revision != self._record.revision:
            return Ending.REPLACED  # changed a moment ago: that is to be tried
        try:
            await self._store.finish_stream(
                lease.stream, lease=lease.token, outcome=outcome, if_revision=record.revision
            )
        except Conflict:
            return Ending.REPLACED
        return ending


def _failed(error: StreamerError) -> SourceState:
    return SourceState(
        state="failed", reason=error.code.removeprefix("source_"), detail=error.message
    )
