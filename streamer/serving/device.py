"""One thread that computes, shared by everything that wants the device.

Work is not queued as finished packages: a claimant says *that* it has work, and is asked *what* at
the moment the device is free. So a batch holds everything that came while the device was busy, and
an idle device starts at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from streamer.errors import CapacityError
from streamer.serving.config import DeviceConfig

__all__ = ["DeviceThread", "Job"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the thread is to do next."""

    run: Callable[[], Any]
    """In the thread."""
    done: Callable[[Any, BaseException | None], None]
    """In the event loop, with the result or the error."""


class DeviceThread:
    """Belongs to the event loop in which it is first used; not thread-safe otherwise.

    The claims that wait are bounded by their makers: each `Batcher` has at most one per item.
    """

    def __init__(self, *, config: DeviceConfig | None = None) -> None:
        config = config or DeviceConfig()
        self._executor = ThreadPoolExecutor(
            max_workers=1,
            thread_name_prefix="device",
            initializer=_prepare_thread,
            initargs=(config.threads,),
        )
        self._claims: deque[Callable[[], Job | None]] = deque()
        self._is_busy = False
        self._is_closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    def claim(self, take: Callable[[], Job | None]) -> None:
        """Ask to be called, in the event loop, once the device is free, first come first served.

        Args:
            take: gives the job to run now, or None when nothing is left to do. Must not raise.

        Raises:
            CapacityError: the device is closed.
        """
        if self._is_closed:
            raise CapacityError("The device is closed; its process is shutting down.")
        self._claims.append(take)
        self._next(asyncio.get_running_loop())

    async def run(self, work: Callable[[], T]) -> T:
        """Run one thing in the thread. Cancellation gives up the result, not the work begun.

        Raises: what `work` raises; `CapacityError` when the device is closed or out of memory.
        """
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def done(result: Any, error: BaseException | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)

        self.claim(lambda: None if answer.done() else Job(run=work, done=done))
        return await answer

    async def close(self) -> None:
        """Take no more claims, finish those made, end the thread. Idempotent."""
        self._is_closed = True
        await self._idle.wait()
        self._executor.shutdown(wait=False)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._claims and not self._is_busy:
            job = self._claims.popleft()()
            if job is not None:
                self._start(job, loop)
        if not self._is_busy:
            self._idle.set()

    def _start(self, job: Job, loop: asyncio.AbstractEventLoop) -> None:
        self._is_busy = True
        self._idle.clear()

        def finish(future: Future[Any]) -> None:
            error = future.exception()
            try:
                job.done(None if error else future.result(), _translated(error))
            finally:  # whatever its maker does, the device is free
                self._is_busy = False
                self._next(loop)

        running = self._executor.submit(job.run)
        running.add_done_callback(lambda future: loop.call_soon_threadsafe(finish, future))


def _prepare_thread(threads: int) -> None:
    if threads:
        torch.set_num_threads(threads)


def _translated(error: BaseException | None) -> BaseException | None:
    """Torch's own out-of-memory error becomes one that callers know to retry."""
    if not isinstance(error, torch.OutOfMemoryError):
        return error
    translated = CapacityError("The device has too little memory for this batch.")
    translated.__cause__ = error
    return translated
