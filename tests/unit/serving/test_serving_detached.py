"""Requests that bring their own number: nothing of them reaches a stream of the same name."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
import torch
from doubles import wait_until

from streamer.metrics import METRICS
from streamer.models.vjepa2 import VJepa2
from streamer.prometheus_meter import PrometheusMeter
from streamer.records import Latent
from streamer.serving.anticipating import AnticipationService
from streamer.serving.device import DeviceThread

pytestmark = pytest.mark.unit


@pytest.fixture
def latent(small_model: VJepa2) -> Latent:
    return Latent(
        stream="cam",
        clip=0,
        tokens=torch.randn(16, 24, generator=torch.Generator().manual_seed(0)),
        normed=False,
        grid=(4, 2, 2),
        model=small_model.fingerprint,
    )


async def test_a_streams_newer_clip_does_not_cut_it_short(
    small_model: VJepa2, leased: Any, latent: Latent, make_clip: Any, make_request: Any
) -> None:
    store, _ = leased
    device = DeviceThread()
    service = AnticipationService(small_model, store=store, device=device)
    is_free = threading.Event()
    busy = asyncio.ensure_future(device.run(lambda: is_free.wait(10)))
    request = make_request(make_clip(0), lease="", number=7, horizons_s=(0.5, 1.0))
    waiting = asyncio.ensure_future(service.anticipate(latent, request))
    await wait_until(lambda: service._batcher.waiting == 1)
    service.supersede(stream=request.stream, clip=request.clip)
    is_free.set()
    reply = await waiting
    await busy
    assert (reply.seq, reply.is_superseded) == (7, False)
    assert [f["horizon_s"] for f in json.loads(reply.body or b"")["futures"]] == [0.5, 1.0]
    assert (await store.read("cam", after_seq=0)).entries == ()
    await service.close()
    await device.close()


async def test_it_makes_no_series_of_its_callers_name(
    small_model: VJepa2, leased: Any, latent: Latent, make_clip: Any, make_request: Any
) -> None:
    store, _ = leased
    device, meter = DeviceThread(), PrometheusMeter()
    service = AnticipationService(small_model, store=store, device=device, meter=meter)
    prior = None
    for number in (1, 2):
        clip = make_clip(number, seed=number)
        request = make_request(clip, lease="", number=number, prior=prior, horizons_s=(0.5, 1.0))
        reply = await service.anticipate(latent, request)
        prior = reply.prior
    assert json.loads(reply.body or b"")["surprise"] is not None
    assert any("stream" in metric.labels for metric in METRICS.values())
    assert b"stream=" not in meter.exposition()
    await service.close()
    await device.close()
