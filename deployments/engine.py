"""A model on its device thread, as encoder, rollout and fused replicas have it."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import torch

from streamer.clock import monotonic_ns
from streamer.layout import LayoutConfig
from streamer.loading import load_served_model, resolve_device
from streamer.models.vjepa2 import VJepa2
from streamer.serving.config import ServingConfig
from streamer.serving.device import DeviceThread
from streamer.settings import Settings

__all__ = ["Engine", "Pulse", "load_engine", "threads_per_replica"]

# A batch of a large model on a busy CPU takes half a minute; a hung driver takes for ever.
_STUCK_S = 120.0
_BEAT_S = 1.0


class Engine:
    """What `load_engine` gives: everything that a serving core is built from."""

    def __init__(self, model: VJepa2, *, config: ServingConfig, device: str) -> None:
        self.model = model
        self.config = config
        self.device_name = device
        self.device = DeviceThread(config=config.device)
        self.pulse = Pulse(self.device, device_name=device)


async def load_engine(settings: Settings) -> Engine:
    """Load the model in a thread; the replica's loop stays free for health checks.

    Raises: as `streamer.loading.load_served_model`.
    """
    model = await asyncio.to_thread(load_served_model, settings)
    device = resolve_device(settings.model.device)
    config = settings.serving_config(device=device)
    if not config.device.threads:
        threads = threads_per_replica(settings.ray, cores=len(os.sched_getaffinity(0)))
        config = replace(config, device=replace(config.device, threads=threads))
    return Engine(model, config=config, device=device)


def threads_per_replica(layout: LayoutConfig, *, cores: int) -> int:
    """Cores / replicas, as if all were on this machine.

    Torch's own choice is no choice here: Ray sets OMP_NUM_THREADS to the (fractional) CPUs that a
    replica asked for, so it would be 1.
    """
    replicas = layout.most_encoders
    if layout.placement == "split":
        replicas += layout.rollout_replicas
    return max(1, cores // replicas)


class Pulse:
    """Whether the device thread still gets things done.

    An event loop answers health checks while its device hangs; so the checks ask this.
    """

    def __init__(
        self, device: DeviceThread, *, device_name: str, stuck_s: float = _STUCK_S
    ) -> None:
        self._device = device
        self._device_name = device_name
        self._stuck_s = stuck_s
        self._beat_ns = monotonic_ns()

    async def run(self) -> None:
        """Pass through the thread once a second, for ever.

        Raises:
            RuntimeError: the CUDA context is broken.
        """
        while True:
            await self._device.run(self._touch)
            self._beat_ns = monotonic_ns()
            await asyncio.sleep(_BEAT_S)

    def is_beating(self) -> bool:
        return monotonic_ns() - self._beat_ns < self._stuck_s * 1e9

    def check(self) -> None:
        """For `check_health`. Raises `RuntimeError`."""
        if not self.is_beating():
            raise RuntimeError(f"the device thread has not answered for {self._stuck_s:g} s")

    def _touch(self) -> None:
        if self._device_name.startswith("cuda"):
            torch.cuda.synchronize(self._device_name)
