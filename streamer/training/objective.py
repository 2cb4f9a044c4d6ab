"""What is compared with what: predictions with layer-normed latents of the target encoder."""

# B batch  M target tokens  D width

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

__all__ = ["LossKind", "error", "motion_weights", "normed"]

LossKind = Literal["l1", "l2", "l1+l2"]
"""`l1` is V-JEPA 2's. With `l1` the best guess about an uncertain place is the median, which is
"nothing there"; `l1+l2` keeps what is uncertain visible."""

_EPS = 1e-5


def normed(tokens: Tensor) -> Tensor:
    """The affine-free layer norm (eps 1e-5) in which predictions live."""
    return layer_norm(tokens, tokens.shape[-1:], eps=_EPS)


def error(
    prediction_BMD: Tensor,
    target_BMD: Tensor,
    *,
    kind: LossKind = "l1",
    weights_BM: Tensor | None = None,
) -> Tensor:
    """Mean error of predicted tokens -> scalar.

    Args:
        target_BMD: layer-normed, without gradient.
        weights_BM: how much each token counts, mean 1; None: all alike.

    Source: vjepa2 app/vjepa/train.py::loss_fn (c2963a4), `mean |z - h|^e / e`: identical for `l1`
        (e = 1) and `l2` (e = 2); `l1+l2` is `mean(|z - h| + (z - h)^2)`.
    """
    difference = prediction_BMD - target_BMD
    if kind == "l1":
        values = difference.abs()
    elif kind == "l2":
        values = difference.square() / 2
    else:
        values = difference.abs() + difference.square()
    if weights_BM is None:
        return values.mean()
    return (values.mean(dim=-1) * weights_BM).mean()


@torch.no_grad()
def motion_weights(
    target_BMD: Tensor, before_BPD: Tensor, *, floor: float = 0.5, most: float = 8.0
) -> Tensor:
    """Tokens that change count more: `floor + (1 - floor) * min(most, m / mean(m))`.

    Args:
        target_BMD: layer-normed targets, whole tubelets in order.
        before_BPD: the last tubelet of the context, likewise; each target token is compared with
            the one at its place.

    Returns:
        `[B, M]`, mean 1 or a little less.
    """
    tubelets = target_BMD.shape[1] // before_BPD.shape[1]
    change_BM = (target_BMD - before_BPD.repeat(1, tubelets, 1)).abs().mean(dim=-1)
    mean = change_BM.mean(dim=1, keepdim=True).clamp_min(1e-6)
    return floor + (1 - floor) * (change_BM / mean).clamp_max(most)
