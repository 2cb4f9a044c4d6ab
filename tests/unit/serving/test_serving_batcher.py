"""Batches form while the device is busy; every accepted item is answered exactly once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.clock import monotonic_ns
from streamer.errors import CapacityError, ConfigError, NumericalError
from streamer.serving.batcher import Batched, Batcher
from streamer.serving.config import BatchConfig
from streamer.serving.device import DeviceThread

pytestmark = pytest.mark.unit

DEADLINE_S = 10


class Gated:
    """An engine that doubles numbers, once the gate is open; keeps its batches."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.batches: list[list[int]] = []
        if is_open:
            self.gate.set()

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        self.begun.set()
        assert self.gate.wait(DEADLINE_S)
        if any(item < 0 for item in items):
            raise ValueError(f"cannot double {list(items)}")
        return [2 * item for item in items]


def _batcher(engine: Gated, device: DeviceThread, **limits: int) -> Batcher[int, int]:
    return Batcher(engine, device=device, stage="encode", config=BatchConfig(**limits))


def _submit(batcher: Batcher[int, int], *items: int) -> list[asyncio.Task[Batched[int]]]:
    return [asyncio.ensure_future(batcher.submit(item)) for item in items]


async def _begun(engine: Gated) -> None:
    assert await asyncio.to_thread(engine.begun.wait, DEADLINE_S)


async def test_idle_starts_at_once_and_busy_fills_the_batch() -> None:
    engine, device = Gated(), DeviceThread()
    batcher = _batcher(engine, device, max_batch=4)
    first = _submit(batcher, 1)
    await _begun(engine)
    rest = _submit(batcher, *range(2, 8))
    await asyncio.sleep(0)
    assert batcher.waiting == 6
    waiting_since_ns = monotonic_ns()
    await asyncio.to_thread(threading.Event().wait, 0.02)
    waited_ms = (monotonic_ns() - waiting_since_ns) / 1e6
    engine.gate.set()
    answers = await asyncio.gather(*first, *rest)
    assert engine.batches == [[1], [2, 3, 4, 5], [6, 7]]
    assert [answer.result for answer in answers] == [2 * n for n in range(1, 8)]
    assert all(answer.queue_ms >= waited_ms for answer in answers[1:])
    assert all(answer.run_ms >= 0 for answer in answers)
    await batcher.close()
    await device.close()


async def test_a_full_queue_refuses() -> None:
    engine, device = Gated(), DeviceThread()
    batcher = _batcher(engine, device, max_waiting=2)
    accepted = _submit(batcher, 1)
    await _begun(engine)
    accepted += _submit(batcher, 2, 3)
    await asyncio.sleep(0)
    with pytest.raises(CapacityError, match="2 items waiting") as caught:
        await batcher.submit(4)
    assert caught.value.retry_after_s > 0
    engine.gate.set()
    assert [answer.result for answer in await asyncio.gather(*accepted)] == [2, 4, 6]
    assert (await batcher.submit(4)).result == 8
    await batcher.close()
    await device.close()


async def test_cancelling_a_waiting_item_makes_room() -> None:
    engine, device = Gated(), DeviceThread()
    batcher = _batcher(engine, device, max_waiting=1)
    running = _submit(batcher, 1)
    await _begun(engine)
    (waiting,) = _submit(batcher, 2)
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    later = _submit(batcher, 3)
    engine.gate.set()
    assert [answer.result for answer in await asyncio.gather(*running, *later)] == [2, 6]
    assert engine.batches == [[1], [3]]
    await batcher.close()
    await device.close()


async def test_cancelling_a_running_item_loses_only_its_result() -> None:
    engine, device = Gated(), DeviceThread()
    batcher = _batcher(engine, device)
    (running,) = _submit(batcher, 1)
    await _begun(engine)
    running.cancel()
    await asyncio.wait([running])
    later = _submit(batcher, 2)
    closing = asyncio.ensure_future(batcher.close())
    await asyncio.sleep(0)
    assert not closing.done()
    engine.gate.set()
    assert (await later[0]).result == 4
    await closing
    assert engine.batches == [[1], [2]]
    await device.close()


async def test_an_error_reaches_every_item_of_its_batch_and_no_other() -> None:
    engine, device = Gated(), DeviceThread()
    batcher = _batcher(engine, device, max_batch=2)
    blocker = _submit(batcher, 1)
    await _begun(engine)
    tasks = _submit(batcher, -2, 3, 4)
    await asyncio.sleep(0)
    engine.gate.set()
    *failed, good = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in failed] == [ValueError, ValueError]
    assert good.result == 8
    await asyncio.gather(*blocker)
    await batcher.close()
    await device.close()


async def test_what_the_world_does_to_one_item_harms_no_other_of_its_batch() -> None:
    batches: list[list[int]] = []

    def engine(items: Sequence[int]) -> list[int]:
        batches.append(list(items))
        if 13 in items:
            raise NumericalError("13 is not finite.")
        return [2 * item for item in items]

    device = DeviceThread()
    batcher: Batcher[int, int] = Batcher(
        engine, device=device, stage="encode", config=BatchConfig(max_batch=4)
    )
    gate = threading.Event()
    blocker = asyncio.ensure_future(device.run(lambda: gate.wait(DEADLINE_S)))
    await asyncio.sleep(0)
    tasks = _submit(batcher, 1, 13, 2)
    await asyncio.sleep(0)
    gate.set()
    one, bad, two = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(one, Batched) and isinstance(two, Batched)
    assert (one.result, two.result) == (2, 4)
    assert isinstance(bad, NumericalError)
    assert batches == [[1, 13, 2], [1], [13], [2]]
    assert await blocker
    await batcher.close()
    await device.close()


async def test_unlike_items_do_not_share_a_batch_and_keep_their_turn() -> None:
    engine, device = Gated(), DeviceThread()
    batcher = Batcher(
        engine,
        device=device,
        stage="encode",
        config=BatchConfig(max_batch=4),
        key=lambda item: item % 2,
    )
    tasks = _submit(batcher, 0)
    await _begun(engine)
    tasks += _submit(batcher, 1, 2, 3, 4)
    await asyncio.sleep(0)
    engine.gate.set()
    assert [each.result for each in await asyncio.gather(*tasks)] == [0, 2, 4, 6, 8]
    assert engine.batches == [[0], [1, 3], [2, 4]]
    await batcher.close()
    await device.close()


async def test_two_batchers_take_turns_on_one_device() -> None:
    one, other, device = Gated(), Gated(is_open=True), DeviceThread()
    first, second = _batcher(one, device), _batcher(other, device)
    tasks = _submit(first, 1)
    await _begun(one)
    tasks += _submit(second, 2)
    tasks += _submit(first, 3)
    await asyncio.sleep(0)
    assert other.batches == []
    one.gate.set()
    assert [each.result for each in await asyncio.gather(*tasks)] == [2, 4, 6]
    await first.close()
    await second.close()
    await device.close()


async def test_close_drains() -> None:
    engine, device = Gated(), DeviceThread()
    batcher = _batcher(engine, device)
    tasks = _submit(batcher, 1, 2, 3)
    await _begun(engine)
    closing = asyncio.ensure_future(batcher.close())
    await asyncio.sleep(0)
    with pytest.raises(CapacityError, match="shutting down"):
        await batcher.submit(4)
    assert not closing.done()
    engine.gate.set()
    await closing
    assert [each.result for each in await asyncio.gather(*tasks)] == [2, 4, 6]
    await device.close()


async def test_a_closed_device_refuses_and_nothing_hangs() -> None:
    device = DeviceThread()
    batcher = _batcher(Gated(is_open=True), device)
    await device.close()
    with pytest.raises(CapacityError):
        await batcher.submit(1)
    await batcher.close()


class BrokenMeter:
    def add(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        raise ValueError(name)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        raise ValueError(name)


async def test_answers_do_not_depend_on_the_meter() -> None:
    complaints: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context["exception"]))
    device = DeviceThread()
    batcher = Batcher(Gated(is_open=True), device=device, stage="encode", meter=BrokenMeter())
    for n in (1, 2):
        assert (await asyncio.wait_for(batcher.submit(n), DEADLINE_S)).result == 2 * n
    await asyncio.wait_for(batcher.close(), DEADLINE_S)
    assert [type(each) for each in complaints] == [ValueError, ValueError]
    await device.close()


async def test_an_engine_that_loses_results_is_found_out() -> None:
    device = DeviceThread()
    batcher: Batcher[int, int] = Batcher(lambda items: [], device=device, stage="encode")
    with pytest.raises(RuntimeError, match="0 results for 1"):
        await batcher.submit(1)
    await batcher.close()
    await device.close()


@settings(max_examples=25, deadline=None)
@given(
    plan=st.lists(st.sampled_from(["submit", "cancel", "yield", "fail"]), max_size=25),
    max_batch=st.integers(1, 4),
    max_waiting=st.integers(1, 6),
)
def test_every_item_is_answered_once(plan: list[str], max_batch: int, max_waiting: int) -> None:
    async def run() -> None:
        engine, device = Gated(is_open=True), DeviceThread()
        batcher = _batcher(engine, device, max_batch=max_batch, max_waiting=max_waiting)
        tasks: dict[int, asyncio.Task[Batched[int]]] = {}
        for n, action in enumerate(plan, start=1):
            if action == "yield":
                await asyncio.sleep(0)
            elif action == "cancel" and tasks:
                tasks[max(tasks)].cancel()
            elif action in ("submit", "fail"):
                (tasks[n],) = _submit(batcher, n if action == "submit" else -n)
        results = await asyncio.wait_for(
            asyncio.gather(*tasks.values(), return_exceptions=True), DEADLINE_S
        )
        await asyncio.wait_for(batcher.close(), DEADLINE_S)
        await device.close()
        seen = [abs(item) for batch in engine.batches for item in batch]
        assert len(seen) == len(set(seen))
        assert seen == sorted(seen)
        assert all(len(batch) <= max_batch for batch in engine.batches)
        for n, result in zip(tasks, results, strict=True):
            if isinstance(result, Batched):
                assert result.result == 2 * n
            else:
                assert isinstance(result, CapacityError | ValueError | asyncio.CancelledError)

    asyncio.run(run())


@pytest.mark.parametrize("limits", [{"max_batch": 0}, {"max_waiting": 0}])
def test_limits_that_cannot_work(limits: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        BatchConfig(**limits)
