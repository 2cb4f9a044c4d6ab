"""The reference ways from pictures to model input, for files, fixtures and released scores.

They differ from each other (anti-aliasing, rounding, where the crop starts), and a model's
published numbers belong to one of them: `eval_arrays` is what upstream's evaluations measured. Live
streams do not pass here; `streamer.frames` sizes their pictures before they become clips.
"""

# T frames  H W pixels  C channels

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

from streamer.errors import ShapeMismatch
from streamer.latents.resize import (
    resize_float,
    resize_opencv,
    resize_smooth,
    resize_smooth_rounded,
)

__all__ = [
    "MEAN",
    "STD",
    "droid_square",
    "eval_arrays",
    "eval_tensors",
    "hf_processor",
    "multiview",
    "short_side",
]

MEAN: Final = (0.485, 0.456, 0.406)
"""Of ImageNet, RGB, for values in 0..1."""
STD: Final = (0.229, 0.224, 0.225)

Resize = Callable[[Tensor, tuple[int, int]], Tensor]


def short_side(crop: int) -> int:
    """The side to which the shorter one is resized before a centre crop."""
    return int(crop * 256 / 224)


def eval_arrays(video_THWC: Tensor, *, crop: int) -> Tensor:
    """Upstream's evaluation transform for arrays: bilinear without anti-aliasing, rounded.

    Args:
        video_THWC: `uint8 [T, H, W, 3]` RGB.
        crop: pixels per side of the result.

    Returns:
        `float32 [3, T, crop, crop]`, normalised.

    Raises:
        ShapeMismatch: not `uint8 [T, H, W, 3]`.

    Source: vjepa2 evals/video_classification_frozen/utils.py::EvalVideoTransform (c2963a4) on
        arrays, identical.
    """
    resized = _resize_short(_planes(video_THWC), short_side(crop), resize=resize_opencv)
    return _normalised(_centre_crop(resized, crop)).transpose(0, 1)


def eval_tensors(video_THWC: Tensor, *, crop: int) -> Tensor:
    """Upstream's evaluation transform for tensors: bilinear with anti-aliasing, rounded.

    Args, Returns, Raises: as `eval_arrays`.

    Source: vjepa2 evals/video_classification_frozen/utils.py::EvalVideoTransform (c2963a4) on
        tensors, identical.
    """
    resized = _resize_short(_planes(video_THWC), short_side(crop), resize=resize_smooth_rounded)
    return _normalised(_centre_crop(resized, crop)).transpose(0, 1)


def hf_processor(video_THWC: Tensor, *, crop: int) -> Tensor:
    """The video processor of transformers: anti-aliased, crop offset rounded down.

    Args, Raises: as `eval_arrays`.

    Returns:
        `float32 [T, 3, crop, crop]`, normalised: time before channels.

    Source: transformers 5.24.0 VJEPA2VideoProcessor, identical.
    """
    resized = _resize_short(_planes(video_THWC), short_side(crop), resize=resize_smooth)
    return _normalised(_centre_crop(resized, crop, rounds_down=True))


def droid_square(video_THWC: Tensor, *, crop: int) -> Tensor:
    """Upstream's transform for robot videos: the centre square, resized in floating point.

    Args, Returns, Raises: as `eval_arrays`.

    Source: vjepa2 app/vjepa_droid/transforms.py::VideoTransform (c2963a4) with the released
        settings of planning (aspect ratio 1, no augmentation), identical.
    """
    planes = _planes(video_THWC)
    square = _centre_crop(planes, min(planes.shape[-2:]))
    return _normalised(resize_float(square, (crop, crop))).transpose(0, 1)


def multiview(video_THWC: Tensor, *, crop: int, views: int) -> list[Tensor]:
    """Windows along the long side, after the short side is resized to the crop.

    Args, Raises: as `eval_arrays`.
        views: 1 or more.

    Returns:
        `views` times `float32 [3, T, crop, crop]`, from the left or the top.

    Source: vjepa2 evals/video_classification_frozen/utils.py::EvalVideoTransform (c2963a4) on
        arrays, identical.
    """
    if views < 1:
        raise ValueError(f"views is {views}; it must be 1 or more")
    resized = _resize_short(_planes(video_THWC), crop, resize=resize_opencv)
    height, width = resized.shape[-2:]
    spare = max(height, width) - crop
    starts = [i * (spare // (views - 1)) for i in range(views)] if views > 1 else [0]
    axis = 2 if height > width else 3
    return [_normalised(resized.narrow(axis, start, crop)).transpose(0, 1) for start in starts]


def _planes(video_THWC: Tensor) -> Tensor:
    shape = tuple(video_THWC.shape)
    if video_THWC.dtype != torch.uint8 or len(shape) != 4 or shape[3] != 3 or min(shape) < 1:
        raise ShapeMismatch(
            f"A video must be uint8 [T, H, W, 3]; "
            f"found {str(video_THWC.dtype).removeprefix('torch.')} {list(shape)}."
        )
    return video_THWC.permute(0, 3, 1, 2)


def _resize_short(planes_TCHW: Tensor, short: int, *, resize: Resize) -> Tensor:
    height, width = planes_TCHW.shape[-2:]
    if min(height, width) == short:
        return planes_TCHW
    long = int(short * max(height, width) / min(height, width))
    return resize(planes_TCHW, (short, long) if height <= width else (long, short))


def _centre_crop(planes_TCHW: Tensor, side: int, *, rounds_down: bool = False) -> Tensor:
    height, width = planes_TCHW.shape[-2:]
    spare = (height - side, width - side)
    top, left = (each // 2 if rounds_down else round(each / 2) for each in spare)
    return planes_TCHW[..., top : top + side, left : left + side]


def _normalised(planes_TCHW: Tensor) -> Tensor:
    mean = torch.tensor(MEAN).view(3, 1, 1)
    std = torch.tensor(STD).view(3, 1, 1)
    return (planes_TCHW.to(torch.float32) / 255 - mean) / std
