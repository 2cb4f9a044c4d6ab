"""Losses of probes."""

# N samples  C classes

from __future__ import annotations

from typing import Literal

from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

__all__ = ["sigmoid_focal_loss"]


def sigmoid_focal_loss(
    logits_NC: Tensor,
    targets_NC: Tensor,
    *,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: Literal["sum", "mean"] = "sum",
) -> Tensor:
    """Cross-entropy per class, in which what is easy counts little -> scalar.

    Args:
        targets_NC: 0 or 1.
        alpha: weight of positives, `1 - alpha` of negatives; below 0: both alike.

    Source: vjepa2 evals/action_anticipation_frozen/losses.py::sigmoid_focal_loss (c2963a4),
        identical.
    """
    targets = targets_NC.to(logits_NC.dtype)
    probability = logits_NC.sigmoid()
    plain = binary_cross_entropy_with_logits(logits_NC, targets, reduction="none")
    right = probability * targets + (1 - probability) * (1 - targets)
    loss = plain * (1 - right) ** gamma
    if alpha >= 0:
        loss = loss * (alpha * targets + (1 - alpha) * (1 - targets))
    return loss.sum() if reduction == "sum" else loss.mean()
