"""Pixels to tokens: one 3-D convolution whose stride is its kernel (a tubelet)."""

# B batch  C channels  T frames  (S, h, w) grid  N tokens = S*h*w  D width

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from streamer.errors import ShapeMismatch

__all__ = ["TubeletEmbedding"]


class TubeletEmbedding(nn.Module):
    """`[B, C, T, H, W]` -> `[B, N, D]`, tokens time-major, then rows, then columns.

    Source: vjepa2 src/models/utils/patch_embed.py::PatchEmbed3D (c2963a4), identical on clips;
        differs in that fewer frames than a tubelet are repeated, as transformers does.
    """

    def __init__(self, *, channels: int, width: int, patch: int, tubelet: int) -> None:
        super().__init__()
        size = (tubelet, patch, patch)
        self.proj = nn.Conv3d(channels, width, kernel_size=size, stride=size)

    def forward(self, pixels: Tensor) -> tuple[Tensor, tuple[int, int, int]]:
        """Tokens and their grid (S, h, w).

        Args:
            pixels: normalised, `float [B, C, T, H, W]`; or `[B, C, H, W]`, one picture each. A
                last incomplete tubelet is dropped.

        Raises:
            ShapeMismatch: other dimensions, or a side that is no multiple of the patch.
        """
        clip = self._as_clip(pixels).to(self.proj.weight.dtype)
        tubelet, patch, _ = self.proj.kernel_size
        steps, rows, columns = (
            size // side for size, side in zip(clip.shape[2:], (tubelet, patch, patch), strict=True)
        )
        if clip.dtype == torch.float32:
            x = self.proj(clip).flatten(2).transpose(1, 2)
        else:
            x = self._as_product(clip[:, :, : steps * tubelet])
        return x, (steps, rows, columns)

    def _as_product(self, clip: Tensor) -> Tensor:
        """The convolution as one matrix product.

        In bf16 a CPU without bf16 instructions took 7 s for the convolution of one 64-frame clip
        of 128 pixels, and 0.25 s for this. In fp32 the convolution stays: it is bit-equal to
        published code.
        """
        tubelet, patch, _ = self.proj.kernel_size
        cut = clip.unflatten(4, (-1, patch)).unflatten(3, (-1, patch)).unflatten(2, (-1, tubelet))
        cubes = cut.permute(0, 2, 4, 6, 1, 3, 5, 7).flatten(4).flatten(1, 3)
        return linear(cubes, self.proj.weight.flatten(1), self.proj.bias)

    def _as_clip(self, pixels: Tensor) -> Tensor:
        clip = pixels.unsqueeze(2) if pixels.ndim == 4 else pixels
        tubelet, patch, _ = self.proj.kernel_size
        wrong = clip.ndim != 5 or clip.shape[1] != self.proj.in_channels or 0 in clip.shape
        if wrong or clip.shape[3] % patch or clip.shape[4] % patch:
            raise ShapeMismatch(
                f"Pixels must be [B, {self.proj.in_channels}, T, H, W] or a picture without T, "
                f"H and W multiples of {patch}; found {list(pixels.shape)}."
            )
        return clip.repeat(1, 1, tubelet, 1, 1) if clip.shape[2] < tubelet else clip
