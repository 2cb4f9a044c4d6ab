"""What the store keeps of a latent picture: small colour panels, one per horizon, in one body.

A body is one line of JSON and then the raw pixels, so a reader needs no picture library to cut out
one panel; PNGs are made for whoever asks (`streamer.gateway.png`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

__all__ = ["PANELS_MEDIA_TYPE", "Panels", "pack_panels", "unpack_panels"]

PANELS_MEDIA_TYPE: Final = "image/vnd.streamer.panels"
_SAME_HORIZON_S = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """One clip's latent picture."""

    seq: int
    """Of the anticipation; 0 when it has none."""
    model: str
    """Fingerprint; colours of two models cannot be compared."""
    horizons_s: tuple[float, ...]
    """Ascending; 0 is the newest observed tubelet."""
    rows: int
    columns: int
    pixels: bytes
    """`uint8 [len(horizons_s), rows, columns, 3]` RGB."""

    def panel(self, horizon_s: float) -> bytes | None:
        """`uint8 [rows, columns, 3]` of that horizon (equal to 1 ms); None when there is none."""
        for i, each in enumerate(self.horizons_s):
            if abs(each - horizon_s) < _SAME_HORIZON_S:
                return self._at(i)
        return None

    def each(self) -> list[bytes]:
        """All panels in the order of the horizons."""
        return [self._at(i) for i in range(len(self.horizons_s))]

    def _at(self, i: int) -> bytes:
        size = self.rows * self.columns * 3
        return self.pixels[i * size : (i + 1) * size]


def pack_panels(panels: Panels, *, max_bytes: int) -> bytes:
    """The body. What does not fit is left out, the furthest horizons first.

    Raises:
        ValueError: not even the observed panel fits.
    """
    for count in range(len(panels.horizons_s), 0, -1):
        body = _packed(panels, count)
        if len(body) <= max_bytes:
            return body
    raise ValueError(f"a panel of {panels.rows} x {panels.columns} needs more than {max_bytes} B")


def unpack_panels(body: bytes) -> Panels:
    """The inverse. Raises `ValueError` for anything else."""
    head, _, pixels = body.partition(b"\n")
    facts = json.loads(head)
    if not isinstance(facts, dict) or facts.keys() != {
        *("seq", "model", "horizons_s", "rows", "columns")
    }:
        raise ValueError("not a latent picture")
    panels = Panels(**(facts | {"horizons_s": tuple(facts["horizons_s"])}), pixels=pixels)
    if len(pixels) != len(panels.horizons_s) * panels.rows * panels.columns * 3:
        raise ValueError("a latent picture was cut short")
    return panels


def _packed(panels: Panels, count: int) -> bytes:
    head = {
        "seq": panels.seq,
        "model": panels.model,
        "horizons_s": panels.horizons_s[:count],
        "rows": panels.rows,
        "columns": panels.columns,
    }
    size = count * panels.rows * panels.columns * 3
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + panels.pixels[:size]
