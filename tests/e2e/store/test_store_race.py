"""Real processes race for one lease; the log tells whether two ever had it at once."""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import groupby
from pathlib import Path

import pytest
from redis_server import running_redis

from streamer.records import StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.redis import RedisStore

pytestmark = pytest.mark.e2e

RACER = Path(__file__).with_name("lease_racer.py")
RACERS = 2
SECONDS = 4


async def race(url: str, name: str) -> dict[str, int]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(RACER), url, name, str(SECONDS)), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    told: dict[str, int] = json.loads(out)
    return told


async def test_one_process_at_a_time_writes() -> None:
    with running_redis() as server:
        store = RedisStore(StoreConfig(url=server.url))
        await store.create_stream("kitchen", StreamSpec(source="synthetic:bounce"))
        told = await asyncio.gather(*(race(server.url, f"p{n}") for n in range(RACERS)))
        log = await store.read("kitchen", after_seq=0, limit=10_000)
        await store.close()
    assert all(each["leases"] > 1 for each in told), told
    assert sum(each["refused"] for each in told) > 1, told
    assert [entry.seq for entry in log.entries] == list(range(1, log.head_seq + 1))
    tokens = [json.loads(entry.body)["token"] for entry in log.entries]
    turns = [token for token, _ in groupby(tokens)]
    assert len(turns) == len(set(turns))  # nobody wrote again after somebody else had begun
    assert len(turns) <= sum(each["leases"] for each in told)
