"""A linear readout of latents, fitted in closed form."""

# N samples  F features  C outputs

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from streamer.errors import ShapeMismatch

__all__ = ["LinearProbe", "fit_ridge"]

_LEAST_STD = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearProbe:
    """`(x - mean) / std @ weight + bias`."""

    mean: Tensor
    std: Tensor
    """`[F]`."""
    weight: Tensor
    """`[F, C]`."""
    bias: Tensor
    """`[C]`."""

    def __call__(self, features_NF: Tensor) -> Tensor:
        """`[N, F]` -> `[N, C]`."""
        return (features_NF - self.mean) / self.std @ self.weight + self.bias


def fit_ridge(features_NF: Tensor, targets_NC: Tensor, *, penalty: float = 0.02) -> LinearProbe:
    """Least squares with a penalty on the weights.

    Args:
        penalty: per sample, for features of variance 1.

    Raises:
        ShapeMismatch: not as many targets as samples.
    """
    if features_NF.ndim != 2 or targets_NC.ndim != 2 or len(features_NF) != len(targets_NC):
        raise ShapeMismatch(
            f"A probe is fitted on [N, F] and [N, C]; found {list(features_NF.shape)} and "
            f"{list(targets_NC.shape)}."
        )
    mean, std = features_NF.mean(dim=0), features_NF.std(dim=0).clamp_min(_LEAST_STD)
    scaled, bias = (features_NF - mean) / std, targets_NC.mean(dim=0)
    gram = scaled.T @ scaled
    gram.diagonal().add_(penalty * len(scaled))
    weight = torch.linalg.solve(gram, scaled.T @ (targets_NC - bias))
    return LinearProbe(mean=mean, std=std, weight=weight, bias=bias)
