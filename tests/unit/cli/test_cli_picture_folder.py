"""Frames and latents side by side, as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from streamer.cli.picture_folder import PictureFolder
from streamer.errors import ConfigError
from streamer.events.panels import Panels
from streamer.playback import Illustration

pytestmark = pytest.mark.unit

CELLS = np.random.default_rng(0).integers(0, 255, (2, 4, 4, 3), dtype=np.uint8)


def illustration(*, side: int = 64, seq: int = 7) -> Illustration:
    frame = np.random.default_rng(1).integers(0, 255, (side, side, 3), dtype=np.uint8)
    panels = Panels(
        seq=seq, model="f", horizons_s=(0.0, 0.5), rows=4, columns=4, pixels=CELLS.tobytes()
    )
    return Illustration(seq=seq, frame=frame, panels=panels)


@pytest.mark.parametrize(("side", "height"), [(64, 256), (256, 256), (384, 384)])
def test_the_frame_and_each_panel_have_one_height(tmp_path: Path, side: int, height: int) -> None:
    folder = PictureFolder(tmp_path / "new" / "pictures")
    shown = illustration(side=side)
    folder.save(shown)
    assert folder.saved == 1
    with Image.open(tmp_path / "new" / "pictures" / "000007_frame_now_0.5s.png") as image:
        found = np.asarray(image)
    assert found.shape == (height, 3 * height + 2 * 4, 3)
    scale = height // side
    assert np.array_equal(found[::scale, :height:scale], shown.frame)
    assert (found[:, height : height + 4] == 255).all()
    assert np.array_equal(
        found[:: height // 4, height + 4 : 2 * height + 4 : height // 4], CELLS[0]
    )
    assert np.array_equal(found[:: height // 4, 2 * height + 8 :: height // 4], CELLS[1])


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(ConfigError, match="cannot be a folder"):
        PictureFolder(taken)
    folder = PictureFolder(tmp_path / "pictures")
    (tmp_path / "pictures" / "000007_frame_now_0.5s.png").mkdir()
    with pytest.raises(ConfigError, match="cannot be written"):
        folder.save(illustration())
