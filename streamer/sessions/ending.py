"""How a session ended, and which of its parts ended it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from enum import StrEnum
from typing import Any

from streamer.errors import LeaseLost

__all__ = ["Ending", "first_of"]


class Ending(StrEnum):
    """Why `Session.run` returned. `ENDED` and `FAILED` are for good, the others are not."""

    ENDED = "ended"
    """The source was read to its end."""
    FAILED = "failed"
    """The source or the model cannot serve this stream; the stream's outcome says so."""
    PAUSED = "paused"
    """Somebody wants the stream paused."""
    REPLACED = "unregistered or changed"
    """The stream is gone from the registry, or its specification changed."""
    LEASE_LOST = "lease_lost"
    """Another session owns the stream now."""


# When two things end a session in the same turn, the earlier one in this list is what happened.
_RANK = (Ending.LEASE_LOST, Ending.REPLACED, Ending.FAILED, Ending.ENDED, Ending.PAUSED)


async def first_of(*parts: Coroutine[Any, Any, Ending | None]) -> Ending:
    """Run all; the first to return ends the others. Cancellation ends all.

    Raises:
        ExceptionGroup: a part raised something else than `LeaseLost`.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_until_lost(part)) for part in parts]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
    return min((task.result() for task in done), key=_RANK.index)


async def _until_lost(part: Coroutine[Any, Any, Ending | None]) -> Ending:
    try:
        return await part or Ending.ENDED
    except LeaseLost:
        return Ending.LEASE_LOST
