"""The stored body of a latent picture."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamer.events.panels import Panels, pack_panels, unpack_panels

pytestmark = pytest.mark.unit

SIZE = 2 * 3 * 3
PANELS = Panels(
    seq=7,
    model="0123456789ab",
    horizons_s=(0.0, 0.5, 1.0),
    rows=2,
    columns=3,
    pixels=b"\n" * SIZE + b"b" * SIZE + b"c" * SIZE,
)


def test_a_body_comes_back_as_it_was() -> None:
    found = unpack_panels(pack_panels(PANELS, max_bytes=1000))
    assert found == PANELS
    assert [found.panel(h) for h in (0, 0.5004, 1)] == found.each()
    assert (found.panel(0.5), found.panel(0.7)) == (b"b" * SIZE, None)


def test_the_furthest_horizons_are_left_out_of_a_body_that_is_too_large() -> None:
    whole = len(pack_panels(PANELS, max_bytes=1000))
    found = unpack_panels(pack_panels(PANELS, max_bytes=whole - 1))
    assert found == replace(PANELS, horizons_s=(0.0, 0.5), pixels=PANELS.pixels[: 2 * SIZE])
    with pytest.raises(ValueError, match="2 x 3"):
        pack_panels(PANELS, max_bytes=SIZE)


@pytest.mark.parametrize(
    "body", [b"", b"{}\n", b"[]\n", pack_panels(PANELS, max_bytes=1000)[:-1], b"\xff\xd8\xff"]
)
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        unpack_panels(body)
