"""Pixels to tokens: one 3-D convolution whose stride is its kernel (a tubelet)."""

# B batch  C channels  T frames  (S, h, w) grid  N tokens = S*h*w  D width

from __future__ import annotations

from torch import Tensor, nn

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
        x = self.proj(clip)
        steps, rows, columns = x.shape[2:]
        return x.flatten(2).transpose(1, 2), (steps, rows, columns)

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
