"""A process that wants a lease: ``lease_racer.py URL NAME SECONDS``. Started by the tests.

Whenever it has the lease it appends some events, then stalls beyond the lease's end without knowing
it and tries once more. It prints how many leases it had and how often it was refused.
"""

from __future__ import annotations

import asyncio
import json
import sys

from streamer.errors import Conflict, LeaseLost
from streamer.store.config import StoreConfig
from streamer.store.protocol import Lease
from streamer.store.redis import RedisStore

STREAM = "kitchen"
TTL_S = 0.2


async def main(url: str, name: str, seconds: float) -> None:
    store = RedisStore(StoreConfig(url=url))
    leases = refused = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    lease = await store.acquire_lease(STREAM, owner=name, ttl_s=TTL_S)
                except Conflict:
                    await asyncio.sleep(0.001)
                    continue
                leases += 1
                refused += await _write(store, lease)
    except TimeoutError:
        print(json.dumps({"leases": leases, "refused": refused}))
    finally:
        await store.close()


async def _write(store: RedisStore, lease: Lease) -> int:
    body = json.dumps({"token": lease.token}).encode()
    try:
        for _ in range(5):
            await store.append(STREAM, lease=lease.token, body=body)
        await asyncio.sleep(TTL_S * 1.5)
        await store.append(STREAM, lease=lease.token, body=body)
    except LeaseLost:
        return 1
    return 0


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
