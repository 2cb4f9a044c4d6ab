"""`streamer serve --demo`: what it shows must never end what runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from doubles import wait_until

from streamer.cli.serve import DEMO_STREAM, show_demo
from streamer.errors import CapacityError, NotFound
from streamer.records import StreamSpec
from streamer.settings import load_settings
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.unit

URL = "http://127.0.0.1:1"


class Store(MemoryStore):
    """An embedded store that can go away and come back empty."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: Exception | None = None
        self.created = 0

    async def create_stream(self, stream: str, spec: StreamSpec) -> Any:
        self.created += 1
        return await super().create_stream(stream, spec)

    async def wait(self, stream: str, *, after_seq: int, timeout_s: float) -> int:
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        return await super().wait(stream, after_seq=after_seq, timeout_s=0.02)


async def emptied(store: Store) -> None:
    store.__init__()  # type: ignore[misc]  # another epoch, no streams


async def away(store: Store) -> None:
    store.failure = CapacityError("The store does not answer.")


@pytest.mark.parametrize("happens", [emptied, away])
async def test_a_store_that_was_away_gets_the_demo_again(
    happens: Callable[[Store], Awaitable[None]],
) -> None:
    store = Store()
    showing = asyncio.ensure_future(show_demo(store, load_settings(), url=URL, again_s=0.01))
    await wait_until(lambda: store.created == 1)
    await happens(store)
    created = store.created
    await wait_until(lambda: store.created > created or showing.done())
    assert not showing.done(), showing.exception()
    assert (await store.get_stream(DEMO_STREAM)).desired == "live"
    showing.cancel()


async def test_a_demo_that_was_removed_is_not_brought_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = Store()
    showing = asyncio.ensure_future(show_demo(store, load_settings(), url=URL, again_s=0.01))
    await wait_until(lambda: store.created == 1)
    await store.delete_stream(DEMO_STREAM)
    store.failure = NotFound("Its log is gone as well, an hour later.")
    async with asyncio.timeout(5):
        await showing
    assert store.created == 1
    assert "removed" in capsys.readouterr().err


async def test_a_store_that_stays_away_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    class Gone(Store):
        async def epoch(self) -> str:
            self.created += 1
            raise CapacityError("The store does not answer.")

    store = Gone()
    showing = asyncio.ensure_future(show_demo(store, load_settings(), url=URL, again_s=0.001))
    await wait_until(lambda: store.created > 4)
    showing.cancel()
    assert capsys.readouterr().err.count("the demo waits") == 1
