"""Snapshots and latent pictures over HTTP, with a store that holds a few."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from streamer.clock import parse_utc
from streamer.events.panels import PANELS_MEDIA_TYPE, Panels, pack_panels
from streamer.store.protocol import StoredPicture

pytestmark = pytest.mark.unit

FIRST, SECOND = "2026-12-01T09:00:03.250000Z", "2026-12-01T09:00:04.250000Z"
BETWEEN, BEFORE = "2026-12-01T09:00:04Z", "2026-12-01T09:00:03Z"
SNAPSHOT, LATENT = "/v1/streams/cam/snapshot.jpg", "/v1/streams/cam/latent.png"
PIXELS = np.random.default_rng(0).integers(0, 256, (3, 4, 4, 3), dtype=np.uint8)


def panels(seq=7, *, horizons_s=(0.0, 0.5, 1.0)):
    pixels = PIXELS[: len(horizons_s)].tobytes()
    return Panels(seq=seq, model="f", horizons_s=horizons_s, rows=4, columns=4, pixels=pixels)


def stored(time, body, media_type="image/jpeg"):
    return StoredPicture(captured_at_ns=parse_utc(time), media_type=media_type, body=body)


async def put(gateway, kind, picture):
    token = gateway.leases["cam"].token
    await gateway.store.put_picture("cam", lease=token, kind=kind, picture=picture, ttl_s=60)


@pytest.fixture
async def filled(gateway):
    await gateway.stream()
    await put(gateway, "snapshot", stored(FIRST, b"first"))
    await put(gateway, "snapshot", stored(SECOND, b"second"))
    body = pack_panels(panels(), max_bytes=32_768)
    await put(gateway, "latent", stored(FIRST, body, PANELS_MEDIA_TYPE))
    return gateway


async def refused(http, url, status, *parts):
    answer = await http.get(url)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    for part in parts:
        assert part in answer.json()["detail"]


def image(answer):
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    with Image.open(io.BytesIO(answer.content)) as found:
        return np.asarray(found.convert("RGB"))


async def test_the_newest_snapshot_with_its_capture_time(filled, http):
    answer = await http.get(SNAPSHOT)
    assert (answer.status_code, answer.content) == (200, b"second")
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.headers["x-capture-time"] == SECOND
    assert answer.headers["last-modified"] == "Tue, 01 Dec 2026 09:00:04 GMT"
    assert answer.headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize(
    ("at", "body"),
    [
        (FIRST, b"first"),
        (BETWEEN, b"first"),
        (SECOND, b"second"),
        ("2026-12-01T10:00:04+01:00", b"first"),
        ("2030-01-01T00:00:00Z", b"second"),
    ],
)
async def test_a_snapshot_of_then_or_before(filled, http, at, body):
    assert (await http.get(SNAPSHOT, params={"at": at})).content == body
    assert (await http.get(f"{SNAPSHOT}?at={at}")).content == body  # a plus sign not escaped


async def test_what_is_known_is_not_sent_again(filled, http):
    etag = (await http.get(SNAPSHOT)).headers["etag"]
    for known in (etag, f'"other", W/{etag}', "*"):
        again = await http.get(SNAPSHOT, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == etag
    other = await http.get(f"{SNAPSHOT}?at={FIRST}", headers={"If-None-Match": etag})
    assert (other.status_code, other.content) == (200, b"first")


async def test_each_view_of_a_latent_has_its_own_tag(filled, http):
    views = ["", "?horizon_s=0.5", "?strip=true", "?scale=2", "?horizon_s=0.5&scale=2"]
    tags = {(await http.get(LATENT + view)).headers["etag"] for view in views}
    assert len(tags) == len(views)
    etag = (await http.get(LATENT)).headers["etag"]
    assert (await http.get(LATENT, headers={"If-None-Match": etag})).status_code == 304


@pytest.mark.parametrize(("query", "panel"), [("", 0), ("&horizon_s=0.5", 1), ("&horizon_s=1", 2)])
async def test_one_panel_of_the_latent(filled, http, query, panel):
    answer = await http.get(f"{LATENT}?scale=1{query}")
    assert np.array_equal(image(answer), PIXELS[panel])
    assert answer.headers["x-horizons"] == "0, 0.5, 1"
    assert answer.headers["x-capture-time"] == FIRST


async def test_a_panel_is_about_as_large_as_a_frame(filled, http):
    assert image(await http.get(LATENT)).shape == (256, 256, 3)
    assert image(await http.get(f"{LATENT}?strip=true")).shape == (256, 3 * 256 + 2 * 8, 3)


async def test_a_strip_shows_what_was_seen_and_all_horizons(filled, http):
    found = image(await http.get(f"{LATENT}?strip=true&scale=1"))
    assert np.array_equal(found[:, :4], PIXELS[0])
    assert np.array_equal(found[:, 10:], PIXELS[2])


async def test_reasons_why_there_is_none(gateway, http):
    await refused(http, SNAPSHOT, 404, "no stream 'cam'")
    await gateway.stream()
    await refused(http, SNAPSHOT, 404, "No snapshot", "one per stride")
    await refused(http, LATENT, 404, "No latent")
    await gateway.store.set_desired("cam", "paused")
    await refused(http, SNAPSHOT, 404, "is paused")
    await gateway.store.set_desired("cam", "live")
    token = gateway.leases["cam"].token
    await gateway.store.finish_stream("cam", lease=token, outcome="ended")
    await refused(http, LATENT, 404, "has ended")


async def test_reasons_why_there_is_not_this_one(filled, http):
    await refused(http, f"{SNAPSHOT}?at={BEFORE}", 404, "there are 2", FIRST, SECOND)
    await refused(http, f"{LATENT}?horizon_s=2", 404, "it has 0, 0.5, 1")


@pytest.mark.parametrize(
    ("url", "status", "part"),
    [
        (f"{SNAPSHOT}?at=yesterday", 400, "RFC 3339"),
        (f"{SNAPSHOT}?at=2026-12-01T09:00:03", 400, "with a zone"),
        (f"{SNAPSHOT}?at=0001-01-01T00:00:00%2B23:59", 400, "RFC 3339"),
        (f"{SNAPSHOT}?horizon_s=1", 422, "no such field"),
        (f"{LATENT}?scale=65", 422, "scale"),
        (f"{LATENT}?horizon_s=-1", 422, "horizon_s"),
        (f"{LATENT}?horizon_s=nan", 422, "horizon_s"),
    ],
)
async def test_what_cannot_be_asked(filled, http, url, status, part):
    await refused(http, url, status, part)


async def test_an_answer_has_a_bound(gateway, http):
    await gateway.stream()
    large = Panels(
        seq=1,
        model="f",
        horizons_s=(0.0,) * 12,
        rows=24,
        columns=24,
        pixels=bytes(12 * 24 * 24 * 3),
    )
    await put(gateway, "latent", stored(FIRST, pack_panels(large, max_bytes=32_768), "image/x"))
    await refused(http, f"{LATENT}?strip=true&scale=64", 400, "at most 24")
    assert image(await http.get(f"{LATENT}?strip=true&scale=24")).shape[0] == 576


async def test_a_picture_of_another_version_is_told(gateway, http):
    await gateway.stream()
    await put(gateway, "latent", stored(FIRST, b"\x00\x01", "image/x"))
    await refused(http, LATENT, 404, "another version")
