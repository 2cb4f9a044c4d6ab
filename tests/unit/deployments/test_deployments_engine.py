"""A device thread that hangs is noticed although the event loop answers."""

from __future__ import annotations

import asyncio
import threading

import pytest

from deployments.engine import Pulse, threads_per_replica
from streamer.layout import LayoutConfig
from streamer.serving.device import DeviceThread

pytestmark = pytest.mark.unit


async def test_a_hanging_device_thread_fails_the_health_check() -> None:
    device = DeviceThread()
    pulse = Pulse(device, device_name="cpu", stuck_s=0.3)
    beating = asyncio.ensure_future(pulse.run())
    release = threading.Event()
    try:
        await asyncio.sleep(0)
        pulse.check()
        hanging = asyncio.ensure_future(device.run(release.wait))
        async with asyncio.timeout(10):
            while pulse.is_beating():  # noqa: ASYNC110  # silence is no event
                await asyncio.sleep(0.05)
        with pytest.raises(RuntimeError, match="has not answered"):
            pulse.check()
        release.set()
        await hanging
        async with asyncio.timeout(10):
            while not pulse.is_beating():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        pulse.check()
    finally:
        release.set()
        beating.cancel()
        await asyncio.wait({beating})
        await device.close()


@pytest.mark.parametrize(
    ("layout", "cores", "threads"),
    [
        (LayoutConfig(), 2, 2),
        (LayoutConfig(placement="split"), 2, 1),
        (LayoutConfig(placement="split", encoder_replicas=3), 16, 4),
        (LayoutConfig(placement="split", encoder_max_replicas=3), 16, 4),
        (LayoutConfig(placement="split", encoder_replicas=8, rollout_replicas=8), 4, 1),
    ],
    ids=str,
)
def test_replicas_share_the_cores(layout: LayoutConfig, cores: int, threads: int) -> None:
    assert threads_per_replica(layout, cores=cores) == threads
