"""Many callers, one engine: items wait in a bounded queue and are computed in batches.

A batch is formed when the device is free, from what waits then: no waiting time to tune, batches of
one when idle, full ones under load.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streamer.clock import monotonic_ns
from streamer.errors import CapacityError, StreamerError
from streamer.serving.config import BatchConfig
from streamer.serving.device import DeviceThread, Job
from streamer.telemetry import Meter, NullMeter

__all__ = ["Batched", "Batcher"]

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batched(Generic[Result]):
    """An engine's answer to one item."""

    result: Result
    queue_ms: float
    """Waiting for the device."""
    run_ms: float
    """Computing the batch."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Waiting(Generic[Item, Result]):
    item: Item
    key: Hashable
    answer: asyncio.Future[Batched[Result]]
    since_ns: int


class Batcher(Generic[Item, Result]):
    """A bounded first-come-first-served queue in front of an engine; a full one refuses.

    Args:
        engine: runs in the device's thread; as many results as items, in order. When it raises a
            `StreamerError` for a batch of several, it is asked again for each of them alone, so
            that the error reaches only whom it concerns; a bug is raised to all callers.
        stage: name for metrics.
        key: only items of equal key share a batch; None: all do.
    """

    def __init__(
        self,
        engine: Callable[[Sequence[Item]], Sequence[Result]],
        *,
        device: DeviceThread,
        stage: str,
        config: BatchConfig | None = None,
        key: Callable[[Item], Hashable] | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._engine = engine
        self._device = device
        self._stage = stage
        self._config = config or BatchConfig()
        self._key = key
        self._meter = meter or NullMeter()
        self._waiting: deque[_Waiting[Item, Result]] = deque()
        self._running = 0
        self._last_run_s = 0.0
        self._is_closed = False
        self._drained = asyncio.Event()
        self._drained.set()

    @property
    def waiting(self) -> int:
        """Items that no batch has taken yet."""
        return len(self._waiting)

    async def submit(self, item: Item) -> Batched[Result]:
        """Wait for a place in a batch and for its result.

        Cancellation takes a waiting item out; of a running one only the result is lost.

        Raises:
            CapacityError: the queue is full, or the batcher is closed.
            Exception: what the engine raised.
        """
        self._check_room()
        loop = asyncio.get_running_loop()
        entry: _Waiting[Item, Result] = _Waiting(
            item=item,
            key=self._key(item) if self._key else None,
            answer=loop.create_future(),
            since_ns=monotonic_ns(),
        )
        self._waiting.append(entry)
        self._drained.clear()
        try:
            self._device.claim(self._take)
            return await entry.answer
        finally:
            self._forget(entry)

    async def close(self) -> None:
        """Refuse new items and wait until those accepted are answered. Idempotent."""
        self._is_closed = True
        await self._drained.wait()

    def _check_room(self) -> None:
        if self._is_closed:
            raise CapacityError(f"The {self._stage} stage is shutting down.")
        if len(self._waiting) < self._config.max_waiting:
            return
        self._meter.add("streamer_refused_total", stage=self._stage, reason="queue_full")
        batches = math.ceil(len(self._waiting) / self._config.max_batch) + 1
        raise CapacityError(
            f"The {self._stage} stage has {len(self._waiting)} items waiting, as many as it takes.",
            round(max(0.1, batches * self._last_run_s), 3),
        )

    def _take(self) -> Job | None:
        """The oldest item and those that fit to it; called when the device is free."""
        batch: list[_Waiting[Item, Result]] = []
        left: deque[_Waiting[Item, Result]] = deque()
        for entry in self._waiting:
            fits = len(batch) < self._config.max_batch and (not batch or entry.key == batch[0].key)
            (batch if fits else left).append(entry)
        self._waiting = left
        if not batch:
            return None
        self._running += len(batch)
        started_ns = monotonic_ns()
        return Job(
            run=lambda: self._run([entry.item for entry in batch]),
            done=lambda outcome, error: self._deliver(batch, started_ns, outcome, error),
        )

    def _run(self, items: list[Item]) -> tuple[Sequence[Result | StreamerError], float]:
        started_ns = monotonic_ns()
        try:
            results: Sequence[Result | StreamerError] = self._engine(items)
        except StreamerError as error:
            results = [error] if len(items) == 1 else [self._run([each])[0][0] for each in items]
        if len(results) != len(items):
            raise RuntimeError(f"{self._stage}: {len(results)} results for {len(items)} items")
        return results, (monotonic_ns() - started_ns) / 1e6

    def _deliver(
        self,
        batch: Sequence[_Waiting[Item, Result]],
        started_ns: int,
        outcome: Any,
        error: BaseException | None,
    ) -> None:
        self._running -= len(batch)
        open_entries = [(i, entry) for i, entry in enumerate(batch) if not entry.answer.done()]
        if error is not None:
            for _, entry in open_entries:
                entry.answer.set_exception(error)
        else:
            results, run_ms = outcome
            self._last_run_s = run_ms / 1e3
            for i, entry in open_entries:
                _answer(entry, results[i], started_ns=started_ns, run_ms=run_ms)
        self._note_drained()
        # Last: whatever a meter does, everybody has an answer.
        self._meter.observe("streamer_batch_size", len(batch), stage=self._stage)
        if error is None:
            self._meter.observe("streamer_stage_seconds", self._last_run_s, stage=self._stage)

    def _forget(self, entry: _Waiting[Item, Result]) -> None:
        if entry in self._waiting:
            self._waiting.remove(entry)
        self._note_drained()

    def _note_drained(self) -> None:
        if not self._waiting and not self._running:
            self._drained.set()


def _answer(
    entry: _Waiting[Item, Result],
    result: Result | StreamerError,
    *,
    started_ns: int,
    run_ms: float,
) -> None:
    if isinstance(result, StreamerError):
        entry.answer.set_exception(result)
        return
    queue_ms = (started_ns - entry.since_ns) / 1e6
    entry.answer.set_result(Batched(result=result, queue_ms=queue_ms, run_ms=run_ms))
