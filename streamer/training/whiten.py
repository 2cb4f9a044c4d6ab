"""A patch embedding to start from: the whitened principal components of the data's patches."""

# B batch  T frames  P patches  C values of a patch  D width

from __future__ import annotations

import torch
from torch import Tensor

from streamer.models.patch import TubeletEmbedding

__all__ = ["whiten"]


@torch.no_grad()
def whiten(embedding: TubeletEmbedding, pixels: Tensor, *, scale: float = 1.0) -> None:
    """Fill weights and bias in place, so that tokens of such data have mean 0 and variance `scale`.

    What is the same at a place in all clips (the scene) is left out of the components: with a fixed
    camera it would fill most of them.

    Args:
        pixels: normalised, `float [B, 3, T, H, W]`, a few hundred clips.
    """
    kernel = embedding.proj.weight.shape[2:]
    patches = _patches(pixels, (kernel[0], kernel[1], kernel[2]))
    centred = (patches - patches.mean(dim=(0, 1), keepdim=True)).flatten(0, 2)
    values, vectors = torch.linalg.eigh(centred.T @ centred / len(centred))
    width = embedding.proj.weight.shape[0]
    kept = min(width, len(values))
    order = torch.arange(len(values) - 1, len(values) - 1 - kept, -1)
    floor = values[-1] * 1e-4  # what is only noise shall not become as loud as what is seen
    rows = vectors[:, order] * (scale / (values[order] + floor)).sqrt()
    embedding.proj.weight[:kept] = rows.T.reshape(kept, *embedding.proj.weight.shape[1:])
    mean = patches.flatten(0, 2).mean(dim=0)
    assert embedding.proj.bias is not None
    embedding.proj.bias[:kept] = -(mean @ rows)


def _patches(pixels: Tensor, kernel: tuple[int, int, int]) -> Tensor:
    """`[B, S, P, C]`, values of a patch in the order of the convolution's weights."""
    deep, high, wide = kernel
    cut = pixels.unfold(2, deep, deep).unfold(3, high, high).unfold(4, wide, wide)
    ordered = cut.permute(0, 2, 3, 4, 1, 5, 6, 7)
    return ordered.flatten(4).flatten(2, 3)
