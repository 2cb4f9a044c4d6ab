"""Fresh random weights, the same for the same seed on every machine of one torch version."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from streamer.models.blocks import Block
from streamer.models.pooler import AttentivePooler

__all__ = ["initialise"]


@torch.no_grad()
def initialise(module: nn.Module, *, seed: int, std: float | None = 0.02) -> None:
    """Fill all parameters of a model in place.

    Linear and convolution weights: truncated normal (cut at +-2 absolute), biases 0, layer norms
    (1, 0), mask tokens 0; then the output layers of block i (from 1) divided by sqrt(2 i).

    Args:
        std: None takes ``1 / sqrt(inputs)`` for each layer: at widths around 100, 0.02 leaves
            attention uniform for good.

    Source: vjepa2 src/models/vision_transformer.py::VisionTransformer.init_weights (c2963a4);
        differs in that it draws from its own generator.
    """
    generator = torch.Generator().manual_seed(seed)
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Conv3d):
            part.weight.copy_(_truncated(part.weight.shape, std, generator))
            if part.bias is not None:
                part.bias.zero_()
        elif isinstance(part, nn.LayerNorm):
            part.weight.fill_(1.0)
            part.bias.zero_()
        elif isinstance(part, AttentivePooler):
            part.query_tokens.copy_(_truncated(part.query_tokens.shape, std or 0.02, generator))
        else:
            for parameter in part.parameters(recurse=False):
                parameter.zero_()
    for part in module.modules():
        if isinstance(part, nn.ModuleList):
            _rescale(part)


def _truncated(shape: torch.Size, std: float | None, generator: torch.Generator) -> Tensor:
    weight = torch.empty(shape)
    if std is None:
        std = 1.0 / math.sqrt(weight[0].numel())
    nn.init.trunc_normal_(weight, std=std, a=-2.0, b=2.0, generator=generator)
    return weight


def _rescale(blocks: nn.ModuleList) -> None:
    for i, block in enumerate(blocks, start=1):
        if isinstance(block, Block):
            block.attn.proj.weight.div_(math.sqrt(2.0 * i))
            block.mlp.get_parameter("fc2.weight").div_(math.sqrt(2.0 * i))
