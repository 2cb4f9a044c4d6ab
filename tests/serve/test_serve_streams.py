"""Calls on handles: errors keep their class, cancelled calls end, full queues are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest
import ray
from ray import serve
from ray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    GetTimeoutError,
    ObjectLostError,
    ObjectStoreFullError,
    OufOfBandObjectRefSerializationException,
    OutOfDiskError,
    OwnerDiedError,
    RayTaskError,
    TaskCancelledError,
)
from ray.serve.exceptions import BackPressureError, RayServeException

from deployments.config import by_reference
from deployments.streams import ask, cancelling, translated
from streamer.errors import CapacityError, DeadlineExceeded, HorizonUnreachable, NotFound

pytestmark = pytest.mark.serve

WAIT_S = 20.0
QUICK = {
    "health_check_period_s": 1,
    "graceful_shutdown_wait_loop_s": 0.05,
    "graceful_shutdown_timeout_s": 1,
    "ray_actor_options": {"num_cpus": 0.1},
}


class Probe:
    """Does what a test asks for, and tells what became of it."""

    def __init__(self) -> None:
        self._producing = 0
        self._held = asyncio.Event()
        self._refs: list[Any] = []

    async def fail(self, kind: str) -> None:
        if kind == "horizon":
            raise HorizonUnreachable("The largest horizon is 15.5 s.", 15.5)
        if kind == "unknown":
            raise NotFound("There is no stream 'x'.")
        raise KeyError(kind)

    async def die(self) -> None:
        import os

        os._exit(1)

    async def produce(self) -> AsyncIterator[int]:
        self._producing += 1
        try:
            number = 0
            while True:
                yield number
                number += 1
                await asyncio.sleep(0.02)
        finally:
            self._producing -= 1

    async def producing(self) -> int:
        return self._producing

    async def hold(self) -> str:
        await self._held.wait()
        return "released"

    async def release(self) -> None:
        self._held.set()

    async def put(self, size: int) -> list[Any]:
        return [ray.put(np.zeros(size, dtype=np.uint8))]

    async def measure(self, refs: list[Any]) -> int:
        array = await refs[0]
        return int(array.nbytes)


def probe(**options: Any) -> serve.Application:
    return serve.deployment(Probe, **(QUICK | options)).bind()


async def eventually(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not await condition():  # noqa: ASYNC110  # it is in another process
            await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def handle(cluster: str) -> Any:
    found = serve.run(probe(max_ongoing_requests=100), name="probe", route_prefix=None)
    yield found
    serve.delete("probe")


async def test_our_errors_arrive_with_class_and_facts(handle: Any) -> None:
    with pytest.raises(HorizonUnreachable) as caught:
        await ask("probe", handle.fail.remote("horizon"))
    assert type(caught.value) is HorizonUnreachable
    assert caught.value.largest_s == 15.5
    assert str(caught.value) == "The largest horizon is 15.5 s."
    with pytest.raises(NotFound) as other:
        await ask("probe", handle.fail.remote("unknown"))
    assert type(other.value) is NotFound


async def test_a_bug_stays_a_bug(handle: Any) -> None:
    with pytest.raises(RayTaskError) as caught:
        await ask("probe", handle.fail.remote("bug"))
    assert isinstance(caught.value.cause, KeyError)


async def test_leaving_a_stream_stops_its_producer(handle: Any) -> None:
    async with cancelling(handle.options(stream=True).produce.remote()) as numbers:
        assert [await anext(numbers) for _ in range(3)] == [0, 1, 2]
        assert await handle.producing.remote() == 1

    async def is_idle() -> bool:
        return await handle.producing.remote() == 0

    await eventually(is_idle)


async def test_cancelling_the_reader_stops_the_producer(handle: Any) -> None:
    started = asyncio.Event()

    async def read() -> None:
        async with cancelling(handle.options(stream=True).produce.remote()) as numbers:
            async for _ in numbers:
                started.set()

    reader = asyncio.ensure_future(read())
    async with asyncio.timeout(WAIT_S):
        await started.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader

    async def is_idle() -> bool:
        return await handle.producing.remote() == 0

    await eventually(is_idle)


async def test_a_full_queue_is_a_capacity_error(run_app: Any) -> None:
    full = run_app(probe(max_ongoing_requests=1, max_queued_requests=1), name="full")
    calls = [asyncio.ensure_future(ask("pool", full.hold.remote())) for _ in range(6)]
    async with asyncio.timeout(WAIT_S):
        done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_EXCEPTION)
    errors = [call.exception() for call in done]
    assert errors and all(isinstance(error, CapacityError) for error in errors)
    assert "full queue" in str(errors[0])
    for call in waiting:
        call.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_beyond_max_ongoing_requests_calls_wait(run_app: Any) -> None:
    """Why the edge asks for thousands: with 1, whoever comes second waits for the first."""
    narrow = run_app(probe(max_ongoing_requests=1), name="narrow")
    first = asyncio.ensure_future(ask("pool", narrow.hold.remote()))
    second = asyncio.ensure_future(ask("pool", narrow.release.remote()))
    done, _ = await asyncio.wait({first, second}, timeout=1.5)
    assert not done
    first.cancel()
    async with asyncio.timeout(WAIT_S):
        await second


async def test_a_dead_replica_is_a_capacity_error_and_comes_back(run_app: Any) -> None:
    mortal = run_app(probe(), name="mortal")
    held = asyncio.ensure_future(ask("pool", mortal.hold.remote()))
    with pytest.raises(CapacityError, match="lost a replica"):
        await ask("pool", mortal.die.remote())
    with pytest.raises(CapacityError):
        await held

    async def answers() -> bool:
        try:
            async with asyncio.timeout(5):
                return await ask("pool", mortal.producing.remote()) == 0
        except (CapacityError, TimeoutError):
            return False

    await eventually(answers)


async def test_references_go_through_handles_without_a_leak(handle: Any) -> None:
    size = 4 << 20
    before = object_store_bytes()
    caller = by_reference(handle)
    for _ in range(20):
        made = await ask("probe", caller.put.remote(size))
        assert await ask("probe", caller.measure.remote(made)) == size
        mine = ray.put(np.zeros(size, dtype=np.uint8))
        assert await ask("probe", caller.measure.remote([mine])) == size
    del made, mine

    async def is_empty() -> bool:
        return object_store_bytes() < before + size

    await eventually(is_empty)


async def test_a_reference_in_a_by_value_call_is_refused(handle: Any) -> None:
    """The trap that `by_reference` avoids: Ray would pin the object for ever."""
    by_value = handle.options(_by_reference=False)
    mine = ray.put(np.zeros(1 << 20, dtype=np.uint8))
    with pytest.raises(OufOfBandObjectRefSerializationException):
        await by_value.measure.remote([mine])


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (BackPressureError(9, 8), "full queue"),
        (ActorUnavailableError("restarting", None), "does not answer"),
        (ActorDiedError(), "lost a replica"),
        (RayServeException("The upstream actor died."), "cannot take this"),
        (TaskCancelledError(), "stopping"),
        # The owner's death is noticed some time after its objects could still be read.
        (OwnerDiedError("00" * 28, None, ""), "lost the array"),
        (ObjectLostError("00" * 28, None, ""), "lost the array"),
        (RayTaskError("anticipate", "", OwnerDiedError("00" * 28, None, "")), "lost the array"),
        (RayTaskError("anticipate", "", ActorDiedError()), "lost a replica"),
        (ObjectStoreFullError("full"), "no room"),
        (RayTaskError("encode", "", OutOfDiskError("full")), "full disk"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_ray_says_becomes_a_capacity_error(error: Exception, sentence: str) -> None:
    with pytest.raises(CapacityError, match=sentence) as caught, translated("rollout"):
        raise error
    assert caught.value.retryable
    assert str(caught.value).startswith("The rollout ")


@pytest.mark.parametrize(
    "error",
    [
        GetTimeoutError("late"),
        TimeoutError(),
        # What a rollout says whose latent lay on a node that is gone.
        RayTaskError("anticipate", "", TimeoutError()),
    ],
    ids=["ray", "ours", "inside"],
)
def test_an_answer_that_does_not_come_is_a_missed_deadline(error: Exception) -> None:
    with pytest.raises(DeadlineExceeded), translated("store"):
        raise error


def object_store_bytes() -> int:
    total = ray.cluster_resources()["object_store_memory"]
    free = ray.available_resources().get("object_store_memory", 0.0)
    return int(total - free)
