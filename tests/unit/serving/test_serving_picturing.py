"""From one event to its latent picture in the store, through a real small model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
import torch
from doubles import wait_for, wait_until

from streamer.errors import CapacityError, ModelError, NotFound
from streamer.events.panels import unpack_panels
from streamer.latents.config import PictureConfig
from streamer.latents.picture import basis_of
from streamer.prometheus_meter import PrometheusMeter
from streamer.records import AnticipationReply, Encoded
from streamer.serving import picturing
from streamer.serving.config import ServingConfig
from streamer.serving.local import LocalPipeline
from streamer.store.protocol import StoredPicture

pytestmark = pytest.mark.unit


class Line:
    """A pipeline with its store."""

    def __init__(self, model: Any, leased: Any, request: Any, **config: Any) -> None:
        self.store, self.lease = leased
        self.meter = PrometheusMeter()
        self.pipeline = LocalPipeline(
            model,
            store=self.store,
            config=ServingConfig(pictures=PictureConfig(**config)),
            meter=self.meter,
        )
        self._request = request

    async def anticipate(self, clip: Any, **changes: Any) -> tuple[Encoded, AnticipationReply]:
        encoded = await self.pipeline.encode(clip)
        request = self._request(clip, **({"lease": self.lease.token} | changes))
        return encoded, await self.pipeline.anticipate(encoded, request)

    async def has(self, fate: str) -> bool:
        name = f'streamer_pictures_total{{fate="{fate}",kind="latent"}} 1.0'
        return name in self.meter.exposition().decode()

    async def picture(self) -> StoredPicture:
        await wait_for(lambda: self.has("stored"))
        return await self.store.get_picture("cam", "latent")


@pytest.fixture
async def make_line(small_model, leased, make_request) -> AsyncIterator[Any]:
    lines: list[Line] = []

    def make(**config: Any) -> Line:
        lines.append(Line(small_model, leased, make_request, **config))
        return lines[-1]

    yield make
    for line in lines:
        await line.pipeline.close()


async def test_the_picture_of_an_event_is_kept(make_line, make_clip, small_model) -> None:
    line = make_line()
    await line.pipeline.warm_up(frames=8)
    clip = make_clip(end_ns=1_700_000_000_123_456_789)
    encoded, reply = await line.anticipate(clip)
    picture = await line.picture()
    # Events tell microseconds; the picture is found by what the event tells.
    assert picture.captured_at_ns == 1_700_000_000_123_456_000
    panels = unpack_panels(picture.body)
    assert (panels.seq, panels.model) == (reply.seq, small_model.fingerprint)
    assert (panels.horizons_s, panels.rows, panels.columns) == ((0.0, 0.5, 1.0), 2, 2)
    basis = basis_of(small_model)
    seen = basis.paint(encoded.latent.tokens[-4:])
    foretold = basis.paint(reply.prior.tokens)
    expected = torch.cat([seen[None], foretold])
    assert panels.pixels == expected.numpy().tobytes()


@pytest.mark.parametrize(("config", "warm"), [({"enabled": False}, True), ({}, False)])
async def test_switched_off_or_cold_none_is_made(make_line, make_clip, config, warm) -> None:
    line = make_line(**config)
    if warm:
        await line.pipeline.warm_up(frames=8)
    encoded, reply = await line.anticipate(make_clip())
    assert reply.seq == 1
    with pytest.raises(NotFound):
        await line.store.get_picture("cam", "latent")
    with pytest.raises(CapacityError, match="switched off"):
        await line.pipeline.draw(encoded, reply)


async def test_an_event_of_no_stream_has_none(make_line, make_clip) -> None:
    line = make_line()
    await line.pipeline.warm_up(frames=8)
    encoded, reply = await line.anticipate(make_clip(), number=5)
    panels = await line.pipeline.draw(encoded, reply)
    assert (panels.seq, len(panels.each())) == (5, 3)
    with pytest.raises(NotFound):
        await line.store.get_picture("cam", "latent")


async def test_one_per_stream_is_in_the_making(make_line, make_clip) -> None:
    line, gate = make_line(), asyncio.Event()
    await line.pipeline.warm_up(frames=8)
    put = line.store.put_picture

    async def slow(*arguments: Any, **keywords: Any) -> None:
        await gate.wait()
        await put(*arguments, **keywords)

    line.store.put_picture = slow
    await line.anticipate(make_clip(0))
    await line.anticipate(make_clip(1))
    assert await line.has("dropped")
    gate.set()
    assert unpack_panels((await line.picture()).body).seq == 1


async def test_a_store_without_room_costs_the_picture_alone(make_line, make_clip) -> None:
    line = make_line()
    await line.pipeline.warm_up(frames=8)

    async def full(*arguments: Any, **keywords: Any) -> None:
        raise CapacityError("The store is full.")

    line.store.put_picture = full
    _, reply = await line.anticipate(make_clip())
    assert reply.seq == 1
    await wait_for(lambda: line.has("failed"))


async def test_what_breaks_is_logged_and_counted(make_line, make_clip, caplog) -> None:
    line = make_line()
    await line.pipeline.warm_up(frames=8)

    async def broken(*arguments: Any, **keywords: Any) -> None:
        raise RuntimeError("bug")

    line.store.put_picture = broken
    with caplog.at_level(logging.ERROR, logger="streamer.serving.picturing"):
        await line.anticipate(make_clip())
        await wait_until(lambda: bool(caplog.records))
    assert caplog.records[0].message == "latent picture broke"
    assert await line.has("failed")


async def test_a_model_without_colours_is_served_without_pictures(
    make_line, make_clip, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    def refuse(model: Any) -> None:
        raise ModelError("The model's tokens do not differ in three directions; no colours fit.")

    monkeypatch.setattr(picturing, "basis_of", refuse)
    line = make_line()
    await line.pipeline.warm_up(frames=8)
    assert "no latent pictures" in caplog.text
    _, reply = await line.anticipate(make_clip())
    assert reply.seq == 1


async def test_closing_gives_up_on_what_is_in_the_making(make_line, make_clip) -> None:
    line, entered = make_line(), asyncio.Event()
    await line.pipeline.warm_up(frames=8)

    async def stuck(*arguments: Any, **keywords: Any) -> None:
        entered.set()
        await asyncio.Event().wait()

    line.store.put_picture = stuck
    await line.anticipate(make_clip())
    await entered.wait()
    async with asyncio.timeout(5):
        await line.pipeline.close()
