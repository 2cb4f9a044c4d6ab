"""Latent pictures on the feed: found once for all, never waited for by events."""

from __future__ import annotations

import asyncio
import base64
import io
import json

import numpy as np
import pytest
from doubles import wait_until
from PIL import Image
from websockets.asyncio.client import connect

from streamer.clock import format_utc, parse_utc
from streamer.errors import CapacityError
from streamer.events.panels import PANELS_MEDIA_TYPE, Panels, pack_panels
from streamer.gateway.album import Album
from streamer.store.memory import MemoryStore
from streamer.store.protocol import StoredPicture

pytestmark = pytest.mark.unit

START_NS = parse_utc("2026-12-01T09:00:00Z")
PIXELS = np.random.default_rng(0).integers(0, 256, (2, 4, 4, 3), dtype=np.uint8)


class CountingStore(MemoryStore):
    looks = 0
    error = None

    async def get_picture(self, *arguments, **keywords):
        self.looks += 1
        if self.error is not None:
            raise self.error
        return await super().get_picture(*arguments, **keywords)


def time_of(seq):
    return format_utc(START_NS + seq * 10**9)


async def put(gateway, seq, *, stream="cam", told=None):
    panels = Panels(
        seq=told or seq,
        model="f",
        horizons_s=(0.0, 0.5),
        rows=4,
        columns=4,
        pixels=PIXELS.tobytes(),
    )
    picture = StoredPicture(
        captured_at_ns=parse_utc(time_of(seq)),
        media_type=PANELS_MEDIA_TYPE,
        body=pack_panels(panels, max_bytes=32_768),
    )
    token = gateway.leases[stream].token
    await gateway.store.put_picture(stream, lease=token, kind="latent", picture=picture, ttl_s=60)


async def append(gateway, seq, *, stream="cam"):
    body = {"type": "anticipation", "stream": stream, "capture_time": time_of(seq), "futures": []}
    token = gateway.leases[stream].token
    await gateway.store.append(stream, lease=token, body=json.dumps(body).encode())


@pytest.fixture
async def filled(make_gateway):
    gateway = make_gateway(store=CountingStore(epoch="e1"))
    await gateway.stream()
    return gateway


def decoded(panel):
    head, _, data = panel["png"].partition(",")
    assert head == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as image:
        return np.asarray(image)


async def _next(socket):
    return json.loads(await asyncio.wait_for(socket.recv(), 5))


async def _of(socket, *kinds, count):
    found = []
    while len(found) < count:
        message = await _next(socket)
        if message["type"] in kinds:
            found.append(message)
    return found


def _feed(host, query, *, path="/v1/streams/cam/feed"):
    return connect(f"ws://{host}{path}{query}", proxy=None)


async def test_a_picture_follows_its_anticipation(filled):
    async with filled.served() as host, _feed(host, "?picture=true") as socket:
        assert (await _next(socket))["options"]["picture"] is True
        await put(filled, 1)
        await append(filled, 1)
        event, picture = await _next(socket), await _next(socket)
    assert (event["type"], picture["type"]) == ("anticipation", "latent.picture")
    assert (picture["stream"], picture["anticipation"]) == ("cam", event["seq"])
    assert picture["capture_time"] == event["capture_time"]
    assert [panel["horizon_s"] for panel in picture["panels"]] == [0.0, 0.5]
    for panel, pixels in zip(picture["panels"], PIXELS, strict=True):
        assert np.array_equal(decoded(panel), pixels)


@pytest.mark.parametrize("types", ["latent.picture", "stream.state"])
async def test_a_picture_comes_without_its_anticipation(filled, types):
    query = f"?picture=true&types={types}"
    async with filled.served() as host, _feed(host, query) as socket:
        await _next(socket)
        await put(filled, 1)
        await append(filled, 1)
        picture = await _next(socket)
    assert (picture["type"], picture["anticipation"]) == ("latent.picture", 1)


async def test_without_the_option_nobody_looks(filled):
    async with filled.served() as host, _feed(host, "") as socket:
        await _next(socket)
        await put(filled, 1)
        for seq in (1, 2):
            await append(filled, seq)
        assert [e["seq"] for e in await _of(socket, "anticipation", count=2)] == [1, 2]
    assert filled.store.looks == 0


async def test_one_look_serves_all_subscribers(filled):
    async with (
        filled.served() as host,
        _feed(host, "?picture=true") as one,
        _feed(host, "?picture=true&horizons_s=0.5") as other,
    ):
        for socket in (one, other):
            await _next(socket)
        await put(filled, 1)
        await append(filled, 1)
        for socket in (one, other):
            (picture,) = await _of(socket, "latent.picture", count=1)
            assert picture["anticipation"] == 1
    assert filled.store.looks == 1


async def test_several_streams_on_one_socket(filled):
    await filled.stream("hall")
    query = "?stream=cam&stream=hall&picture=true"
    async with filled.served() as host, _feed(host, query, path="/v1/feed") as socket:
        await _next(socket)
        for stream in ("cam", "hall"):
            await put(filled, 1, stream=stream)
            await append(filled, 1, stream=stream)
        found = await _of(socket, "latent.picture", count=2)
    assert {picture["stream"] for picture in found} == {"cam", "hall"}


async def test_a_picture_that_comes_late_is_waited_for_and_one_of_another_run_is_not(filled):
    album = Album(filled.store, "cam", waits_s=(0.0, 0.0, 0.0, 5.0))
    await put(filled, 1, told=99)
    looking = asyncio.ensure_future(album.picture(seq=1, capture_time=time_of(1)))
    await wait_until(lambda: filled.store.looks == 3)
    looking.cancel()  # whoever left does not keep the others from looking
    await put(filled, 1)
    shown = await album.picture(seq=1, capture_time=time_of(1))
    assert (shown.seq, shown.stream) == (1, "cam")


async def test_one_that_is_not_there_keeps_nobody_from_another(filled):
    album = Album(filled.store, "cam", waits_s=(0.0, 60.0))
    waiting = asyncio.ensure_future(album.picture(seq=1, capture_time=time_of(1)))
    await wait_until(lambda: filled.store.looks == 1)
    await put(filled, 2)
    async with asyncio.timeout(5):
        shown = await album.picture(seq=2, capture_time=time_of(2))
    assert shown.seq == 2
    waiting.cancel()


async def test_what_is_not_there_is_not_looked_for_again(filled):
    album = Album(filled.store, "cam", waits_s=(0.0, 0.0))
    for _ in range(2):
        assert await album.picture(seq=1, capture_time=time_of(1)) is None
    assert filled.store.looks == 2


async def test_a_store_that_is_away_costs_the_picture_alone(filled):
    filled.store.error = CapacityError("The store restarts.")
    album = Album(filled.store, "cam", waits_s=(0.0,))
    assert await album.picture(seq=1, capture_time=time_of(1)) is None


async def test_few_are_kept(filled):
    album = Album(filled.store, "cam", waits_s=(0.0,))
    for seq in range(1, 21):
        await album.picture(seq=seq, capture_time=time_of(seq))
    assert len(album._found) == 8


async def test_a_picture_of_another_version_is_left_out(filled):
    at_ns, token = parse_utc(time_of(1)), filled.leases["cam"].token
    picture = StoredPicture(captured_at_ns=at_ns, media_type="image/x", body=b"\x00\x01")
    await filled.store.put_picture("cam", lease=token, kind="latent", picture=picture, ttl_s=60)
    album = Album(filled.store, "cam", waits_s=(0.0,))
    assert await album.picture(seq=1, capture_time=time_of(1)) is None
