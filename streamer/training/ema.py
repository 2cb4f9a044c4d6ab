"""The target encoder: a slow copy of the encoder that no gradient reaches."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

__all__ = ["follow", "target_of"]


def target_of(encoder: nn.Module) -> nn.Module:
    """A copy that needs no gradients."""
    return copy.deepcopy(encoder).requires_grad_(False).eval()


@torch.no_grad()
def follow(target: nn.Module, encoder: nn.Module, *, momentum: float) -> None:
    """Move the target's parameters towards the encoder's: ``k <- m k + (1 - m) q``."""
    theirs: list[Tensor] = list(target.parameters())
    ours: list[Tensor] = list(encoder.parameters())
    torch._foreach_mul_(theirs, momentum)
    torch._foreach_add_(theirs, ours, alpha=1 - momentum)
