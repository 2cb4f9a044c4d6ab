"""One reader per stream and process, whatever subscribers come and go."""

from __future__ import annotations

import asyncio

import pytest

from streamer.errors import CapacityError
from streamer.events.track import Read
from streamer.gateway.config import GatewayConfig
from streamer.gateway.hub import Hub
from streamer.gateway.tail import Tail
from streamer.store.memory import MemoryStore
from streamer.store.protocol import LogEntry, LogSlice

pytestmark = pytest.mark.unit


class CountingStore:
    """The log of one stream, with a gate that `wait` waits for."""

    def __init__(self, *, head=0, epoch="e1"):
        self.epoch, self.head = epoch, head
        self.waits = self.reads = 0
        self.waiting, self.gate = asyncio.Event(), asyncio.Event()

    async def wait(self, stream, *, after_seq, timeout_s):
        self.waits += 1
        self.waiting.set()
        await self.gate.wait()
        self.gate.clear()
        return self.head

    async def read(self, stream, *, after_seq, limit=256):
        self.reads += 1
        seqs = range(after_seq + 1, self.head + 1)[:limit]
        entries = tuple(LogEntry(seq=seq, body=b"{}") for seq in seqs)
        return LogSlice(epoch=self.epoch, first_seq=1, head_seq=self.head, entries=entries)


class SlowStore(CountingStore):
    """Reads look at the log at once; their answers come when the test lets them."""

    def __init__(self, **values):
        super().__init__(**values)
        self.answers = asyncio.Queue()

    async def read(self, stream, *, after_seq, limit=256):
        found = await super().read(stream, after_seq=after_seq, limit=limit)
        answer = asyncio.get_running_loop().create_future()
        self.answers.put_nowait(answer)
        await answer
        return found


def _read(after_seq, limit=256, epoch="e1"):
    return Read(stream="cam", epoch=epoch, after_seq=after_seq, limit=limit, turn=0)


async def _soon(awaitable):
    async with asyncio.timeout(5):
        return await awaitable


async def _start(tail, count, *, after_seq):
    tasks = [asyncio.create_task(tail.after(_read(after_seq))) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_many_subscribers_one_wait_one_read():
    store = CountingStore(head=3)
    tail = Tail(store, "cam", keep=8)
    await tail.now()
    tasks = await _start(tail, 50, after_seq=3)
    store.head = 5
    store.gate.set()
    answers = await asyncio.gather(*tasks)
    assert [[entry.seq for entry in answer.entries] for answer in answers] == [[4, 5]] * 50
    assert (store.waits, store.reads) == (1, 2)


async def test_when_the_reading_subscriber_leaves_another_goes_on():
    store = CountingStore(head=3)
    tail = Tail(store, "cam", keep=8)
    await tail.now()
    first, second = await _start(tail, 2, after_seq=3)
    first.cancel()
    assert await second is None
    store.waiting.clear()
    (again,) = await _start(tail, 1, after_seq=3)
    await asyncio.wait_for(store.waiting.wait(), 5)
    store.head = 4
    store.gate.set()
    assert [entry.seq for entry in (await again).entries] == [4]
    await asyncio.wait([first])


async def test_far_behind_reads_the_store_near_the_end_does_not():
    store = CountingStore(head=20)
    tail = Tail(store, "cam", keep=4)
    await tail.now()
    assert [e.seq for e in (await tail.after(_read(10, limit=5))).entries] == [11, 12, 13, 14, 15]
    assert [e.seq for e in (await tail.after(_read(15))).entries] == [16, 17, 18, 19, 20]
    reads = store.reads
    assert [e.seq for e in (await tail.after(_read(17, limit=2))).entries] == [18, 19]
    assert store.reads == reads
    assert [e.seq for e in (await tail.after(_read(12, limit=1))).entries] == [13]
    assert store.reads == reads + 1


@pytest.mark.parametrize("head", [2, 20, 25])
async def test_a_log_that_began_anew_is_told_at_once(head):
    """Also when the new one stands just where the old one stood."""
    store = CountingStore(head=20)
    tail = Tail(store, "cam", keep=4)
    await tail.now()
    tasks = await _start(tail, 3, after_seq=20)
    store.epoch, store.head = "e2", head
    store.gate.set()
    for answer in await _soon(asyncio.gather(*tasks)):
        assert (answer.epoch, answer.head_seq) == ("e2", head)
    again = await tail.after(_read(0, epoch="e2"))
    assert [entry.seq for entry in again.entries] == list(range(1, head + 1))


async def test_who_comes_late_with_an_old_epoch_is_told_at_once():
    store = CountingStore(head=20, epoch="e2")
    tail = Tail(store, "cam", keep=4)
    await tail.now()
    assert (await _soon(tail.after(_read(20, epoch="e1")))).epoch == "e2"
    (task,) = await _start(tail, 1, after_seq=20)
    store.head = 21
    store.gate.set()
    assert (await _soon(task)).epoch == "e2"


async def test_a_cursor_without_epoch_means_the_present_one():
    store = CountingStore(head=20, epoch="e2")
    tail = Tail(store, "cam", keep=4)
    await tail.now()
    waiting = asyncio.create_task(tail.after(_read(20, epoch=None)))
    await _soon(store.waiting.wait())
    assert not waiting.done()
    store.gate.set()
    assert await _soon(waiting) is None


async def test_an_answer_from_before_the_log_began_anew_does_not_bring_it_back():
    store = SlowStore(head=20)
    tail = Tail(store, "cam", keep=4)
    opening = asyncio.create_task(tail.now())
    (await _soon(store.answers.get())).set_result(None)
    await opening
    slow = asyncio.create_task(tail.after(_read(0)))
    from_e1 = await _soon(store.answers.get())
    store.epoch, store.head = "e2", 2
    quick = asyncio.create_task(tail.now())
    (await _soon(store.answers.get())).set_result(None)
    assert (await quick).epoch == "e2"
    from_e1.set_result(None)
    (await _soon(store.answers.get())).set_result(None)  # it looks again
    assert (await _soon(slow)).epoch == "e2"
    assert [entry.seq for entry in (await tail.after(_read(1, epoch="e2"))).entries] == [2]


async def test_hub_shares_and_forgets(make_gateway):
    hub = Hub(make_gateway(store=MemoryStore()).backend)
    with hub.tail("cam") as one, hub.tail("cam") as two:
        assert one is two
    with hub.tail("cam") as three:
        assert three is not one


async def test_hub_counts_by_process_and_by_token(make_gateway):
    config = GatewayConfig(max_subscribers=3, max_subscribers_per_token=2)
    hub = Hub(make_gateway(config=config, store=MemoryStore()).backend)
    with hub.admit("door"), hub.admit("door"):
        with pytest.raises(CapacityError, match="Token door"), hub.admit("door"):
            pass
        with hub.admit(""), pytest.raises(CapacityError, match="3 subscribers"), hub.admit(""):
            pass
    assert hub.subscribers == 0
    with hub.admit("door"):
        assert hub.subscribers == 1
