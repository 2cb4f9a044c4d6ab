"""Bilinear resizing to the last bit of the libraries that made published numbers.

All take planes `uint8 [..., H, W]` and a size (height, width).
"""

# H W pixels

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import interpolate

__all__ = ["resize_float", "resize_opencv", "resize_smooth", "resize_smooth_rounded"]

_BITS = 11
"""Of the interpolation weights in OpenCV."""


def resize_opencv(planes: Tensor, size: tuple[int, int]) -> Tensor:
    """As OpenCV's linear interpolation of uint8: not anti-aliased, in fixed point -> `uint8`.

    Note: the two truncating shifts lose up to one level against exact arithmetic; the `preprocess`
        parity test holds them.
    """
    left, right, weight_left, weight_right = _taps(planes.shape[-1], size[1])
    wide = planes.to(torch.int32)
    rows = wide[..., left] * weight_left + wide[..., right] * weight_right
    top, bottom, weight_top, weight_bottom = _taps(planes.shape[-2], size[0])
    upper = ((rows[..., top, :] >> 4) * weight_top[:, None]) >> 16
    lower = ((rows[..., bottom, :] >> 4) * weight_bottom[:, None]) >> 16
    return ((upper + lower + 2) >> 2).to(torch.uint8)


def _taps(source: int, target: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Per output pixel: the two inputs and their integer weights, which sum to 2048."""
    centres = (torch.arange(target, dtype=torch.float64) + 0.5) * (source / target) - 0.5
    left = centres.floor()
    share = (centres - left).to(torch.float32)
    share[(left < 0) | (left >= source - 1)] = 0.0
    first = left.to(torch.int64).clamp(0, source - 1)
    second = (first + 1).clamp(max=source - 1)
    weight = [(each * 2**_BITS).round().to(torch.int32) for each in (1 - share, share)]
    return first, second, weight[0], weight[1]


def resize_smooth(planes: Tensor, size: tuple[int, int]) -> Tensor:
    """Anti-aliased, in torch's fixed point -> `uint8`: what the processors of transformers use."""
    return interpolate(planes, size=size, mode="bilinear", antialias=True)


def resize_smooth_rounded(planes: Tensor, size: tuple[int, int]) -> Tensor:
    """Anti-aliased in floating point, then rounded -> `uint8`: torchvision on a tensor."""
    smooth = interpolate(planes.to(torch.float32), size=size, mode="bilinear", antialias=True)
    return smooth.round().to(torch.uint8)


def resize_float(planes: Tensor, size: tuple[int, int]) -> Tensor:
    """Not anti-aliased, not rounded -> `float32`."""
    return interpolate(planes.to(torch.float32), size=size, mode="bilinear", align_corners=False)
