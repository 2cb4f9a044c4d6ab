"""Hand-over of clips from a thread to the loop."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import numpy as np
import pytest

from streamer.errors import ConfigError
from streamer.records import Clip
from streamer.sessions.slot import Blocking, ClipSlot, Latest

pytestmark = pytest.mark.unit

CLIP = Clip(
    stream="cam",
    index=0,
    frames=np.zeros((2, 1, 1, 3), dtype=np.uint8),
    start_ns=0,
    end_ns=0,
    fps=4,
    first_frame=0,
    last_frame=1,
    last_tick=1,
    dropped=0,
    filled=0,
    clock="media",
    generation=0,
    arrived_ns=0,
)


def put_some(slot: ClipSlot, indices: range) -> None:
    for index in indices:
        slot.put(replace(CLIP, index=index))


def put_all(slot: ClipSlot, count: int) -> None:
    put_some(slot, range(count))
    slot.close()


async def taken(slot: ClipSlot) -> list[int]:
    found = []
    async with asyncio.timeout(10):
        while (clip := await slot.get()) is not None:
            found.append(clip.index)
    return found


async def test_latest_keeps_the_newest_and_counts_the_rest() -> None:
    slot = Latest()
    await asyncio.to_thread(put_all, slot, 5)
    assert await taken(slot) == [4]
    assert slot.superseded == 4
    assert await slot.get() is None


async def test_latest_holds_one_clip_even_while_the_loop_is_stuck() -> None:
    slot = Latest()
    putting = threading.Thread(target=put_some, args=(slot, range(5)))
    putting.start()
    putting.join(10)  # on the loop: nothing runs there meanwhile
    assert slot.superseded == 4
    clip = await slot.get()
    assert clip is not None and clip.index == 4


async def test_latest_wakes_who_waits() -> None:
    slot = Latest()
    waiting = asyncio.ensure_future(slot.get())
    await asyncio.to_thread(slot.put, CLIP)
    assert await asyncio.wait_for(waiting, 10) is CLIP
    assert slot.superseded == 0


async def test_a_cancelled_get_loses_nothing() -> None:
    slot = Latest()
    waiting = asyncio.ensure_future(slot.get())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.to_thread(put_all, slot, 1)
    assert await taken(slot) == [0]


async def test_blocking_loses_nothing_and_holds_no_more_than_its_size() -> None:
    slot = Blocking(2, stop=threading.Event())
    two, three = threading.Event(), threading.Event()

    def put_twenty() -> None:
        put_some(slot, range(2))
        two.set()
        put_some(slot, range(2, 3))
        three.set()
        put_some(slot, range(3, 20))
        slot.close()

    putting = asyncio.ensure_future(asyncio.to_thread(put_twenty))
    assert await asyncio.to_thread(two.wait, 10)
    assert not await asyncio.to_thread(three.wait, 0.15)
    assert await taken(slot) == list(range(20))
    assert slot.superseded == 0
    await putting


async def test_blocking_lets_go_when_asked_to_stop() -> None:
    stop = threading.Event()
    slot = Blocking(1, stop=stop)
    putting = asyncio.ensure_future(asyncio.to_thread(put_all, slot, 3))
    stop.set()
    await asyncio.wait_for(putting, 10)
    assert await taken(slot) == [0]


async def test_a_slot_without_room_is_refused() -> None:
    with pytest.raises(ConfigError):
        Blocking(0, stop=threading.Event())


def test_a_thread_may_outlive_the_loop() -> None:
    async def make() -> Latest:
        return Latest()

    slot = asyncio.run(make())
    slot.put(CLIP)
    slot.close()
