"""Geometry of the reference transforms, on pictures whose result is known."""

from __future__ import annotations

import pytest
import torch

from streamer.errors import ShapeMismatch
from streamer.latents.preprocess import (
    MEAN,
    STD,
    droid_square,
    eval_arrays,
    eval_tensors,
    hf_processor,
    multiview,
)
from streamer.latents.resize import resize_float, resize_opencv

pytestmark = pytest.mark.unit

WAYS = [eval_arrays, eval_tensors, droid_square]


def _video(height: int, width: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (2, height, width, 3), dtype=torch.uint8, generator=generator)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [(40, 70), (70, 40), (36, 36), (9, 12)])
def test_shape_whatever_the_picture(way, size: tuple[int, int]) -> None:
    found = way(_video(*size), crop=32)
    assert found.shape == (3, 2, 32, 32)
    assert found.dtype is torch.float32
    assert hf_processor(_video(*size), crop=32).shape == (2, 3, 32, 32)


@pytest.mark.parametrize("way", [*WAYS, hf_processor])
def test_a_flat_colour_is_normalised(way) -> None:
    video = torch.empty(1, 50, 60, 3, dtype=torch.uint8)
    video[...] = torch.tensor([10, 100, 200], dtype=torch.uint8)
    found = way(video, crop=32)
    planes = found[0] if way is hf_processor else found[:, 0]
    for channel, level in enumerate((10, 100, 200)):
        expected = (level / 255 - MEAN[channel]) / STD[channel]
        assert planes[channel].max().item() == pytest.approx(expected, abs=1e-4)
        assert planes[channel].min().item() == pytest.approx(expected, abs=1e-4)


def test_no_resize_when_the_short_side_is_right() -> None:
    video = _video(36, 41)
    found = eval_arrays(video, crop=32)
    pixels = video[0, 2:34, 4:36].permute(2, 0, 1).float() / 255  # (41 - 32) / 2 rounds to 4
    expected = (pixels - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)
    torch.testing.assert_close(found[:, 0], expected)


def test_half_offsets_round_to_even_but_down_for_transformers() -> None:
    video = _video(36, 43)  # 11 spare columns: 5.5 -> 6, or 5
    upstream, hf = eval_tensors(video, crop=32), hf_processor(video, crop=32)
    torch.testing.assert_close(upstream[:, 0, :, :-1], hf[0, :, :, 1:])


def test_views_tile_the_long_side() -> None:
    video = _video(32, 96)
    views = multiview(video, crop=32, views=3)
    whole = multiview(video.transpose(1, 2).contiguous(), crop=32, views=3)
    for view, turned in zip(views, whole, strict=True):
        torch.testing.assert_close(view, turned.transpose(2, 3))
    assert not torch.equal(views[0], views[1])
    (only,) = multiview(video, crop=32, views=1)
    torch.testing.assert_close(only, views[0])
    with pytest.raises(ValueError, match="views"):
        multiview(video, crop=32, views=0)


@pytest.mark.parametrize("size", [(20, 31), (61, 47), (5, 7), (1, 1)])
def test_fixed_point_is_within_a_level_of_exact(size: tuple[int, int]) -> None:
    planes = _video(40, 50).permute(0, 3, 1, 2)
    found = resize_opencv(planes, size).float()
    assert (found - resize_float(planes, size)).abs().max() <= 1.01


@pytest.mark.parametrize(
    "video",
    [
        torch.zeros(2, 40, 40, 3),
        torch.zeros(40, 40, 3, dtype=torch.uint8),
        torch.zeros(2, 3, 40, 40, dtype=torch.uint8),
        torch.zeros(0, 40, 40, 3, dtype=torch.uint8),
    ],
)
def test_what_is_no_video_is_refused(video: torch.Tensor) -> None:
    with pytest.raises(ShapeMismatch, match="found"):
        eval_arrays(video, crop=32)
