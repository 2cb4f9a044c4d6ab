"""Calls on Ray that end when their caller ends, and that fail with our errors.

Two facts of Ray 2.60 make this file: leaving ``async for x in handle.remote()`` by cancellation
leaves the producer running in the other replica, so a call is cancelled by whoever opened it; and
a dead replica, a full queue or a lost object each have an error class of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol, TypeVar

from ray.exceptions import (
    ActorUnavailableError,
    ObjectLostError,
    ObjectStoreFullError,
    OutOfDiskError,
    RayActorError,
    RayTaskError,
    TaskCancelledError,
    WorkerCrashedError,
)
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError, RayServeException

from streamer.errors import CapacityError, DeadlineExceeded, StreamerError

__all__ = ["Cancellable", "ask", "cancelling", "tell_all", "translated"]


class Cancellable(Protocol):
    """A `DeploymentResponse` or a `DeploymentResponseGenerator`."""

    def cancel(self) -> None: ...


Call = TypeVar("Call", bound=Cancellable)

_TELL_S = 2.0

# First match wins, so a subclass stands before its parent. All of them are "not now": the caller
# drops what it was doing, and another replica (or the restarted one) takes the next call.
_TABLE: tuple[tuple[type[BaseException], str, float], ...] = (
    (BackPressureError, "has a full queue", 1.0),
    (DeploymentUnavailableError, "has no working replica", 2.0),
    (ActorUnavailableError, "does not answer at the moment", 1.0),
    (RayActorError, "lost a replica while it worked on this", 1.0),
    (WorkerCrashedError, "lost a worker while it worked on this", 1.0),
    (ObjectLostError, "lost the array this was about with the replica that made it", 1.0),
    (ObjectStoreFullError, "has no room for an array in Ray's object store", 1.0),
    (OutOfDiskError, "has a full disk, on which Ray makes no arrays", 5.0),
    (TaskCancelledError, "gave this up, because it is stopping", 1.0),
    # The parent of all others: also "the upstream actor died" of a call that waits for another.
    (RayServeException, "cannot take this now", 1.0),
)


@contextmanager
def translated(who: str) -> Iterator[None]:
    """Turn what Ray raises inside the block into our errors; `who` starts the sentence.

    Raises:
        StreamerError: what the other side raised, with its own class and facts.
        CapacityError: Ray could not deliver the call or its answer, or has no room for an array;
            try again later. `DeadlineExceeded` when something took too long.
    """
    try:
        yield
    except StreamerError as error:
        # Ray delivers a subclass of both RayTaskError and the class that was raised, whose args
        # and message are Ray's: hand on the one that was raised.
        if isinstance(error, RayTaskError):
            raise error.cause from None
        raise
    except TimeoutError as error:  # Ray's own is one, too
        raise _late(who) from error
    except RayTaskError as error:
        # What the replica ran into itself, when it was not one of ours.
        if isinstance(error.cause, TimeoutError):
            raise _late(who) from error
        if (capacity := _capacity_error(who, error.cause)) is None:
            raise
        raise capacity from error
    except tuple(row[0] for row in _TABLE) as error:
        capacity = _capacity_error(who, error)
        assert capacity is not None
        raise capacity from error


def _late(who: str) -> DeadlineExceeded:
    return DeadlineExceeded(f"The {who} did not answer in time.")


def _capacity_error(who: str, error: object) -> CapacityError | None:
    for kind, what, retry_after_s in _TABLE:
        if isinstance(error, kind):
            return CapacityError(f"The {who} {what}. Try again.", retry_after_s)
    return None


@asynccontextmanager
async def cancelling(call: Call) -> AsyncIterator[Call]:
    """Hold a call on a deployment handle; on the way out it is over, also on the other side.

    Cancellation: safe, that is what it is for. Cancelling a finished call does nothing.
    """
    try:
        yield call
    finally:
        call.cancel()


async def ask(who: str, call: Any) -> Any:
    """Await a unary handle call under `cancelling` and `translated`.

    Cancellation: the other side is cancelled too and its answer lost.
    """
    with translated(who):
        try:
            return await call
        except asyncio.CancelledError:
            call.cancel()
            raise


async def tell_all(who: str, handle: Any, method: str, *args: Any) -> None:
    """Call a method on every running replica of a deployment and wait until each has answered.

    Unlike a routed call it ignores how full they are: on a replica at its `max_ongoing_requests`
    it waits there for the next place. One small message per replica, so not for every frame.

    Cancellation: whoever was not told yet is not.

    Raises:
        CapacityError: a replica could not be told, or none is running; all others were.
        DeadlineExceeded: not all answered in time.
    """
    with translated(who):
        async with asyncio.timeout(_TELL_S):
            answers = await handle.broadcast(method, *args).results_async(return_exceptions=True)
    if failed := [answer for answer in answers if isinstance(answer, BaseException)]:
        raise CapacityError(
            f"The {who}: {len(failed)} of {len(answers)} replicas could not be told. Try again."
        ) from failed[0]
