"""`streamer streams snapshot` against a real server."""

from __future__ import annotations

import asyncio

import pytest
from typer.testing import CliRunner

from streamer.cli.main import app
from streamer.clock import parse_utc
from streamer.errors import ConfigError, NotFound
from streamer.events.panels import PANELS_MEDIA_TYPE, Panels, pack_panels
from streamer.store.protocol import StoredPicture

pytestmark = pytest.mark.unit

FIRST, SECOND = "2026-12-01T09:00:03.250000Z", "2026-12-01T09:00:04.250000Z"
PANELS = Panels(seq=1, model="f", horizons_s=(0.0,), rows=4, columns=4, pixels=bytes(48))


@pytest.fixture
async def host(gateway):
    await gateway.stream()
    token = gateway.leases["cam"].token
    latent = pack_panels(PANELS, max_bytes=32_768)
    for kind, time, media_type, body in (
        ("snapshot", FIRST, "image/jpeg", b"first"),
        ("snapshot", SECOND, "image/jpeg", b"second"),
        ("latent", FIRST, PANELS_MEDIA_TYPE, latent),
    ):
        picture = StoredPicture(captured_at_ns=parse_utc(time), media_type=media_type, body=body)
        await gateway.store.put_picture("cam", lease=token, kind=kind, picture=picture, ttl_s=60)
    async with gateway.served() as host:
        yield host


async def _run(host, *args):
    env = {"STREAMER_SERVER": f"http://{host}"}
    command = ["streams", "snapshot", *args]
    return await asyncio.to_thread(CliRunner().invoke, app, command, env=env)


async def test_the_newest_frame_into_a_file(host, tmp_path):
    out = tmp_path / "cam.jpg"
    done = await _run(host, "cam", "--out", str(out))
    assert (done.exit_code, done.stdout, out.read_bytes()) == (0, "", b"second")
    assert f"cam at {SECOND}" in done.stderr


async def test_an_earlier_one_into_a_pipe(host):
    done = await _run(host, "cam", "--at", FIRST)
    assert (done.exit_code, done.stdout_bytes) == (0, b"first")


async def test_the_latent_as_colours(host):
    done = await _run(host, "cam", "--latent")
    assert (done.exit_code, done.stdout_bytes[:4]) == (0, b"\x89PNG")


async def test_what_cannot_be(host, tmp_path):
    missing = await _run(host, "hall", "--out", str(tmp_path / "x.jpg"))
    assert isinstance(missing.exception, NotFound)
    early = await _run(host, "cam", "--at", "2026-12-01T09:00:00Z")
    assert isinstance(early.exception, NotFound)
    assert "there are 2" in str(early.exception)
    bad = await _run(host, "cam", "--at", "yesterday")
    assert isinstance(bad.exception, ConfigError)
    folder = await _run(host, "cam", "--out", str(tmp_path))
    assert isinstance(folder.exception, ConfigError)
