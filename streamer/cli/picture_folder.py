"""`--pictures DIR`: one PNG per anticipation, the frame beside its latent and its futures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from streamer.errors import ConfigError
from streamer.gateway.png import encode_png
from streamer.playback import Illustration
from streamer.records import Pixels

__all__ = ["PictureFolder", "side_by_side"]

_HEIGHT = 256
_RULE = 4


class PictureFolder:
    """Makes the folder if there is none; files of an earlier run with the same name are replaced.

    Raises:
        ConfigError: it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.saved = 0
        """Pictures so far."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{path} cannot be a folder: {error.strerror}.") from error

    def save(self, illustration: Illustration) -> None:
        """Write a file whose name says what its panels are, like ``000011_frame_now_0.5s_1s.png``.
        Raises `ConfigError` when it cannot be written."""
        pixels = side_by_side(illustration)
        rows, columns, _ = pixels.shape
        file = self._path / _name(illustration)
        try:
            file.write_bytes(encode_png(pixels.tobytes(), rows=rows, columns=columns))
        except OSError as error:
            raise ConfigError(f"{file} cannot be written: {error.strerror}.") from error
        self.saved += 1


def _name(illustration: Illustration) -> str:
    horizons = (f"{each:g}s" if each else "now" for each in illustration.panels.horizons_s)
    return f"{illustration.seq:06d}_frame_{'_'.join(horizons)}.png"


def side_by_side(illustration: Illustration) -> Pixels:
    """The frame, what was seen of it, and each horizon: `uint8 [H, W, 3]` RGB."""
    panels, frame = illustration.panels, illustration.frame
    shape = (len(panels.horizons_s), panels.rows, panels.columns, 3)
    cells = np.frombuffer(panels.pixels, dtype=np.uint8).reshape(shape)
    height = max(_HEIGHT, frame.shape[0])
    line = np.full((height, _RULE, 3), 255, dtype=np.uint8)
    parts = [_enlarged(frame, height)]
    for each in cells:
        parts += [line, _enlarged(each, height)]
    return np.concatenate(parts, axis=1)


def _enlarged(pixels: Pixels, height: int) -> Pixels:
    """To this height, by the nearest pixel."""
    rows, columns = pixels.shape[:2]
    width = round(columns * height / rows)
    down, across = np.arange(height) * rows // height, np.arange(width) * columns // width
    enlarged: Pixels = pixels[down[:, None], across]
    return enlarged
