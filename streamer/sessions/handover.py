"""From one half of a session to the other: the first is one clip ahead, never more."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

from streamer.errors import StreamerError

__all__ = ["Handover", "overlapped"]

Thing = TypeVar("Thing")


class Handover(Generic[Thing]):
    """Holds one thing. The next is given only when the taker is done with that."""

    def __init__(self) -> None:
        self.in_hand: Thing | None = None
        """Given, and not done with yet."""
        self._queue: asyncio.Queue[Thing | None] = asyncio.Queue(maxsize=1)
        self._taken = asyncio.Event()

    async def give(self, thing: Thing) -> None:
        """Wait until the taker is free, give it this, and let it begin first: where both want the
        same device, the older clip is to come before the newer one. Cancellation: it may be given.
        """
        await self.finished()
        self.in_hand = thing
        self._taken.clear()
        self._queue.put_nowait(thing)
        await self._taken.wait()

    async def finished(self) -> None:
        """Wait until the taker is done with what it has. Cancellation is safe."""
        await self._queue.join()

    async def close(self) -> None:
        """Nothing more comes. Cancellation: close again."""
        await self.finished()
        self._queue.put_nowait(None)

    async def take(self) -> Thing | None:
        """The next thing, or None after `close`. Cancellation is safe."""
        thing = await self._queue.get()
        self._taken.set()
        return thing

    def done(self) -> None:
        """The taker has finished what it took."""
        self.in_hand = None
        self._queue.task_done()


async def overlapped(
    ahead: Coroutine[Any, Any, None],
    behind: Coroutine[Any, Any, None],
    handover: Handover[Any],
) -> None:
    """Run the giver `ahead` and the taker `behind` side by side until both are over.

    When the giver fails with one of our errors, the taker still finishes what it was given; when
    the taker fails, the giver is cancelled. Cancellation cancels both and waits for them.

    Raises:
        StreamerError: of either, as it is; the taker's when both failed.
        ExceptionGroup: several bugs at once.
    """
    failure: StreamerError | None = None
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(behind)
            try:
                await ahead
            except StreamerError as error:
                failure = error
            await handover.close()
    except BaseExceptionGroup as group_of:
        raise _foremost(group_of) from None
    if failure is not None:
        raise failure


def _foremost(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What callers are to see: the exception itself where there is only one."""
    leaves = _leaves(group)
    return leaves[0] if len(leaves) == 1 else group


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in _leaves(each)]
    return [error]
