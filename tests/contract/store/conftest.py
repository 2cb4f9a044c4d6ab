"""Every implementation of the store, each with a way to let time pass.

A new implementation joins by one more entry in `KITS`; the suite knows nothing else of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from streamer.store.config import StoreConfig
from streamer.store.memory import MemoryStore
from streamer.store.protocol import Store


@dataclass(frozen=True, kw_only=True)
class Kit:
    """One implementation under test."""

    open: Callable[[StoreConfig], Awaitable[Store]]
    """A new store that has lost everything before it."""
    elapse: Callable[[float], Awaitable[None]]
    """Let so many seconds pass for TTLs and ages."""


def memory_kit() -> Kit:
    now_ns = 1_000_000_000_000

    async def open_store(config: StoreConfig) -> Store:
        return MemoryStore(config, monotonic=lambda: now_ns)

    async def elapse(seconds: float) -> None:
        nonlocal now_ns
        now_ns += int(seconds * 1e9)

    return Kit(open=open_store, elapse=elapse)


KITS: dict[str, Callable[[], Kit]] = {"memory": memory_kit}


@pytest.fixture(params=sorted(KITS))
def kit(request: pytest.FixtureRequest) -> Kit:
    return KITS[request.param]()


@pytest.fixture
async def store(kit: Kit) -> Store:
    return await kit.open(StoreConfig())
