"""Pictures of every awkward kind become upright, square RGB."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from media_files import GREY, RED, corner, write_video

from streamer.errors import SourceUnsupported
from streamer.frames.config import PixelConfig
from streamer.frames.pixels import PixelConverter, upright_size
from streamer.records import Picture, Pixels
from streamer.sources.file import FileSource

pytestmark = pytest.mark.unit

CROP = 42  # short edge 48: the test pictures need no scaling


def picture(image: Any) -> Picture:
    return Picture(
        image=image,
        pts_s=0.0,
        captured_at_ns=0,
        arrived_ns=0,
        clock="media",
        generation=0,
        index=0,
    )


def convert(image: Any, *, crop: int = CROP) -> Pixels:
    pixels = PixelConverter(PixelConfig(crop=crop)).convert(picture(image))
    assert pixels.shape == (crop, crop, 3)
    assert pixels.dtype == np.uint8 and pixels.flags.c_contiguous
    return pixels


def decode(path: Path) -> list[Picture]:
    pictures: list[Picture] = []
    FileSource(path, name="test").run(
        sink=pictures.append, report=lambda _: None, stop=threading.Event()
    )
    return pictures


def corners(pixels: Pixels) -> list[str]:
    """What is at top left, top right, bottom left, bottom right."""
    spots = [pixels[y, x].astype(int) for y in (4, -5) for x in (4, -5)]
    names = {"red": RED, "grey": GREY}
    return [min(names, key=lambda n: np.abs(spot - names[n]).sum()) for spot in spots]


@pytest.mark.parametrize(
    ("rotation", "expected"),
    [
        (0, ["red", "grey", "grey", "grey"]),
        (90, ["grey", "grey", "red", "grey"]),
        (-90, ["grey", "red", "grey", "grey"]),
        (180, ["grey", "grey", "grey", "red"]),
    ],
)
def test_rotated_pictures_are_turned_upright(
    tmp_path: Path, rotation: int, expected: list[str]
) -> None:
    (found, *_) = decode(write_video(tmp_path / "a.mp4", [corner()] * 3, rotation=rotation))
    assert corners(convert(found.image)) == expected
    assert upright_size(found) == ((48, 64) if abs(rotation) == 90 else (64, 48))


@pytest.mark.parametrize(
    ("codec", "pixel_format", "height", "width"),
    [
        ("ffv1", "yuv420p", 47, 63),
        ("ffv1", "yuv420p10le", 48, 64),
        ("ffv1", "yuv422p", 49, 50),
        ("ffv1", "yuv444p", 61, 48),
        ("ffv1", "bgr0", 48, 64),
        ("libx264", "yuv444p", 48, 64),
        ("mjpeg", "yuvj420p", 48, 64),
    ],
)
def test_formats_and_odd_sizes_keep_their_colours(
    tmp_path: Path, codec: str, pixel_format: str, height: int, width: int
) -> None:
    path = write_video(
        tmp_path / "a.mkv",
        [corner(height=height, width=width)] * 2,
        codec=codec,
        pixel_format=pixel_format,
    )
    (found, _) = decode(path)
    pixels = convert(found.image)
    assert pixels[8, 8] == pytest.approx(RED, abs=6)
    assert pixels[-8, -8] == pytest.approx(GREY, abs=6)


def test_grey_pictures_become_grey_rgb(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mkv", [corner()] * 2, codec="ffv1", pixel_format="gray")
    pixels = convert(decode(path)[0].image)
    assert (pixels == pixels[..., :1]).all()
    assert pixels[-8, -8] == pytest.approx(GREY, abs=6)


def test_interlaced_pictures_lose_their_combs(tmp_path: Path) -> None:
    woven = np.full((48, 64, 3), 20, np.uint8)
    woven[0::2, 16:24] = 220
    woven[1::2, 40:48] = 220
    options = {"flags": "+ildct+ilme", "x264-params": "interlaced=1:tff=1", "crf": "5"}
    (found, *_) = decode(write_video(tmp_path / "a.mp4", [woven] * 3, options=options))
    assert found.image.interlaced_frame
    pixels = convert(found.image).astype(int)
    combs = np.abs(np.diff(pixels, axis=0)).mean()
    untouched = convert(found.image.reformat(format="rgb24").to_ndarray()).astype(int)
    assert combs < 5 < 30 < np.abs(np.diff(untouched, axis=0)).mean()


def test_centre_of_the_picture_is_kept() -> None:
    image = np.zeros((48, 96, 3), np.uint8)
    image[3:45, 27:69] = 255
    assert (convert(image) == 255).all()
    assert not (convert(np.roll(image, 1, axis=1)) == 255).all()


@pytest.mark.parametrize(("height", "width"), [(8, 8), (1, 1), (3, 5), (480, 640)])
def test_any_size_is_scaled_by_area(height: int, width: int) -> None:
    assert (convert(np.full((height, width, 3), 77, np.uint8)) == 77).all()


def test_downscaling_averages_instead_of_picking() -> None:
    checker = np.indices((480, 480)).sum(axis=0) % 2 * 255
    pixels = convert(np.repeat(checker[..., None], 3, axis=2).astype(np.uint8))
    assert pixels.astype(int) == pytest.approx(127.5, abs=8)


def test_extreme_shapes_stay_small() -> None:
    """8000 x 16 would be 24000 pixels wide after the resize."""
    image = np.zeros((16, 8000, 3), np.uint8)
    image[:, 3992:4008] = 200
    pixels = convert(image)
    assert pixels[CROP // 2, CROP // 2, 0] == 200
    assert convert(image.swapaxes(0, 1)).mean() == pytest.approx(pixels.mean(), abs=3)


def test_one_converter_takes_changing_sizes_and_kinds() -> None:
    converter = PixelConverter(PixelConfig(crop=CROP))
    small, large = corner(), corner(height=96, width=128)
    frame = av.VideoFrame.from_ndarray(large, format="rgb24").reformat(format="yuv420p")
    for image in (small, frame, large, small):
        assert corners(converter.convert(picture(image))) == ["red", "grey", "grey", "grey"]


@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
        np.zeros((4, 4, 3), np.float32),
    ],
)
def test_what_is_no_picture_is_refused(nonsense: Any) -> None:
    with pytest.raises(SourceUnsupported):
        convert(nonsense)


def test_released_crop_has_the_reference_short_edge() -> None:
    assert PixelConfig(crop=256).short_edge == 292
    assert PixelConfig(crop=64).short_edge == 73
