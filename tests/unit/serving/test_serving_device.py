"""One thread, asked what to do when it is free."""

from __future__ import annotations

import asyncio
import threading

import pytest
import torch

from streamer.errors import CapacityError
from streamer.serving.config import DeviceConfig
from streamer.serving.device import DeviceThread, Job

pytestmark = pytest.mark.unit

DEADLINE_S = 10


async def test_everything_runs_in_one_thread_in_order() -> None:
    device = DeviceThread()
    order: list[int] = []

    def work(n: int) -> int:
        order.append(n)
        return threading.get_ident()

    threads = await asyncio.gather(*(device.run(lambda n=n: work(n)) for n in range(5)))
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()
    assert order == list(range(5))
    await device.close()


async def test_errors_arrive_and_the_device_goes_on() -> None:
    device = DeviceThread()

    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await device.run(fail)
    assert await device.run(lambda: 7) == 7
    await device.close()


async def test_a_maker_that_breaks_does_not_stop_the_device() -> None:
    device = DeviceThread()
    complaints: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context["exception"]))

    def done(result: object, error: BaseException | None) -> None:
        raise ZeroDivisionError

    device.claim(lambda: Job(run=lambda: 1, done=done))
    assert await asyncio.wait_for(device.run(lambda: 7), DEADLINE_S) == 7
    assert [type(each) for each in complaints] == [ZeroDivisionError]
    await device.close()


async def test_out_of_memory_is_a_capacity_error() -> None:
    device = DeviceThread()

    def fail() -> None:
        raise torch.OutOfMemoryError("no room")

    with pytest.raises(CapacityError) as caught:
        await device.run(fail)
    assert isinstance(caught.value.__cause__, torch.OutOfMemoryError)
    await device.close()


async def test_cancelled_work_that_waits_is_not_begun() -> None:
    device = DeviceThread()
    gate, begun = threading.Event(), []
    running = asyncio.ensure_future(device.run(lambda: gate.wait(DEADLINE_S)))
    waiting = asyncio.ensure_future(device.run(lambda: begun.append(1)))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    gate.set()
    assert await running
    await device.close()
    assert begun == []


async def test_close_finishes_what_was_claimed_and_refuses_more() -> None:
    device = DeviceThread()
    gate = threading.Event()
    running = asyncio.ensure_future(device.run(lambda: gate.wait(DEADLINE_S)))
    waiting = asyncio.ensure_future(device.run(lambda: "done"))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(device.close())
    await asyncio.sleep(0)
    with pytest.raises(CapacityError):
        await device.run(lambda: None)
    assert not closing.done()
    gate.set()
    assert await running
    assert await waiting == "done"
    await closing
    await device.close()


async def test_threads_of_torch() -> None:
    device = DeviceThread(config=DeviceConfig(threads=1))
    assert await device.run(torch.get_num_threads) == 1
    await device.close()
