"""Latents and futures -> the latent picture of a clip, in the store beside its event.

A picture is made behind its event's back: the event does not wait for it, and a picture that
cannot be made or kept is left out and counted, never a reason to fail. At most one per stream is in
the making.
"""

# K horizons  P tokens per tubelet (h*w)  D width

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

import torch
from torch import Tensor

from streamer.errors import CapacityError, LeaseLost, ModelError
from streamer.events.panels import PANELS_MEDIA_TYPE, Panels, pack_panels
from streamer.latents.config import PictureConfig
from streamer.latents.picture import PictureBasis, basis_of
from streamer.models.vjepa2 import VJepa2
from streamer.records import AnticipationRequest, Latent
from streamer.serving.device import DeviceThread
from streamer.store.protocol import Store, StoredPicture
from streamer.telemetry import Meter

__all__ = ["Picturing", "Scene"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scene:
    """What one picture shows."""

    latent: Latent
    """Its newest tubelet is the panel of horizon 0."""
    futures: Tensor
    """`[K, P, D]`."""
    horizons_s: tuple[float, ...]
    """Of the futures, ascending."""
    seq: int
    """Of the anticipation."""


class Picturing:
    """Keeps nothing of a stream. Makes nothing before `warm_up`, or when it is switched off.

    Args:
        model: the one that makes latents and futures here.
        store: where pictures go.
        device: shared with whatever else computes there.
    """

    def __init__(
        self,
        model: VJepa2,
        *,
        store: Store,
        device: DeviceThread,
        config: PictureConfig,
        meter: Meter,
    ) -> None:
        self._model = model
        self._side = model.config.grid_size
        self._store = store
        self._device = device
        self._config = config
        self._meter = meter
        self._basis: PictureBasis | None = None
        self._making: dict[str, asyncio.Task[None]] = {}

    async def warm_up(self) -> None:
        """Make the basis of colours. A model that gives none is served without pictures."""
        if not self._config.enabled or self._basis is not None:
            return
        try:
            self._basis = await self._device.run(lambda: basis_of(self._model))
        except ModelError as error:
            _LOG.warning("no latent pictures", extra={"error": error.message})

    def begin(self, request: AnticipationRequest, scene: Scene) -> None:
        """Make and keep the picture of an event that was appended. Returns at once."""
        if self._basis is None or request.number is not None:
            return  # switched off, or the event belongs to no stream
        stream = request.stream
        if stream in self._making or len(self._making) >= self._config.max_waiting:
            self._count("dropped")
            return
        task = asyncio.get_running_loop().create_task(self._make(request, scene))
        self._making[stream] = task
        task.add_done_callback(lambda done: self._forget(stream, done))

    async def draw(self, scene: Scene) -> Panels:
        """One picture now. Cancellation is safe.

        Raises:
            CapacityError: the device is closed or out of memory, or pictures are switched off.
        """
        basis = self._basis
        if basis is None:
            raise CapacityError("Latent pictures are switched off (serving.pictures.enabled).")
        pixels = await self._device.run(lambda: self._paint(basis, scene))
        return Panels(
            seq=scene.seq,
            model=self._model.fingerprint,
            horizons_s=(0.0, *scene.horizons_s),
            rows=self._side,
            columns=self._side,
            pixels=pixels,
        )

    async def close(self) -> None:
        """Give up on what is in the making. Idempotent."""
        tasks = set(self._making.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _make(self, request: AnticipationRequest, scene: Scene) -> None:
        try:
            panels = await self.draw(scene)
            picture = StoredPicture(
                # As the event tells it, whose times are in microseconds: the two are matched by it.
                captured_at_ns=max(0, request.end_ns // 1000 * 1000),
                media_type=PANELS_MEDIA_TYPE,
                body=pack_panels(panels, max_bytes=self._config.max_bytes),
            )
            await self._store.put_picture(
                request.stream,
                lease=request.lease,
                kind="latent",
                picture=picture,
                ttl_s=self._config.ttl_s,
            )
        except (CapacityError, LeaseLost) as error:
            _LOG.debug("latent picture left out", extra={"error": error.message})
            self._count("failed")
        else:
            self._count("stored")

    @torch.inference_mode()
    def _paint(self, basis: PictureBasis, scene: Scene) -> bytes:
        """In the device's thread: `uint8 [1 + K, P, 3]`."""
        device = basis.weight.device
        seen_PD = scene.latent.tokens[-(self._side**2) :].to(device)
        pixels = torch.cat([basis.paint(seen_PD)[None], basis.paint(scene.futures.to(device))])
        return pixels.cpu().numpy().tobytes()  # waits for the device

    def _forget(self, stream: str, done: asyncio.Task[None]) -> None:
        del self._making[stream]
        if not done.cancelled() and (error := done.exception()) is not None:
            self._count("failed")
            _LOG.error("latent picture broke", exc_info=error, extra={"stream": stream})

    def _count(self, fate: str) -> None:
        self._meter.add("streamer_pictures_total", kind="latent", fate=fate)
