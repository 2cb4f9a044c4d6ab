"""Streams and feeds come and go on the local shell; what they used comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from crowd import Crowd, steady_usage
from local_service import started_service

pytestmark = pytest.mark.e2e

CYCLES = 2
POOL = 8
"""Threads that the first use of pools brings and that stay."""
MOST_MB = 40
"""What an allocator may keep of some cycles; a stream that stays is 10 MB and more."""


async def test_thirty_streams_and_fifty_feeds_come_and_go_without_a_trace() -> None:
    with started_service() as service:
        root = service.process.pid
        idle = await steady_usage(root)
        crowd = Crowd(service.url, streams=30, feeds=50)
        await crowd.cycle()  # the first of its kind loads and opens what stays
        most_threads = idle.threads + POOL
        before = await steady_usage(root, at_most=replace(idle, threads=most_threads))
        for _ in range(CYCLES):
            await crowd.cycle()
        after = await steady_usage(root, at_most=replace(before, threads=most_threads))
        print(f"before {before}\nafter  {after}")
        assert after.processes == before.processes
        assert max(before.threads, after.threads) <= most_threads
        assert after.fds <= before.fds
        assert after.own_bytes <= before.own_bytes + (MOST_MB << 20)
        assert service.interrupt() == 0
        assert not [line for line in service.lines if "Traceback" in line]
