"""Masked prediction inside one clip: see some tokens, foretell others."""

# B batch  T frames  K context tokens  M target tokens  D width

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from streamer.errors import ConfigError
from streamer.futures.config import RolloutConfig
from streamer.latents.encoder import Encoder
from streamer.models.vjepa2 import VJepa2
from streamer.records import Pixels
from streamer.serving.transfer import read_tensor

__all__ = ["MaskedPrediction", "predict_masked"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaskedPrediction:
    """What was seen and what was foretold."""

    context: Tensor
    """Raw latents `[K, D]` of the context alone."""
    prediction: Tensor
    """`[M, D]`, in the layer-normed space."""


@torch.inference_mode()
def predict_masked(
    model: VJepa2,
    frames: Pixels,
    *,
    context_ids: list[int],
    target_ids: list[int],
    config: RolloutConfig | None = None,
) -> MaskedPrediction:
    """Encode the context tokens of a clip without the others, and predict the targets.

    Args:
        frames: `uint8 [T, crop, crop, 3]` RGB.
        context_ids: token ids of the clip, each once.
        target_ids: token ids of the clip or after it, each once.

    Raises:
        ConfigError: no ids, an id twice, a context id beyond the clip, targets far beyond it.
        ShapeMismatch: the frames do not fit the model.

    Source: vjepa2 app/vjepa/train.py::train, forward_context (c2963a4), as in training;
        differs from transformers' VJEPA2Model.forward, which encodes the context next to targets.
    """
    encoder = Encoder(model)
    encoder.check((1, *frames.shape), frames.dtype)
    steps, rows, columns = encoder.grid(
        frames.shape[0], height=frames.shape[1], width=frames.shape[2]
    )
    count = steps * rows * columns
    _check_ids(context_ids, below=count, what="context")
    _check_ids(target_ids, below=2 * count, what="target")
    context_BK = torch.tensor([context_ids], device=encoder.device)
    target_BM = torch.tensor([target_ids], device=encoder.device)
    context = encoder.encode(read_tensor(frames)[None], context_ids_BK=context_BK)
    mask_index = config.mask_index if config else None
    predicted = model.predictor(context, context_BK, target_BM, mask_index=mask_index)
    return MaskedPrediction(context=context[0], prediction=predicted[0])


def _check_ids(ids: list[int], *, below: int, what: str) -> None:
    if not ids:
        raise ConfigError(f"No {what} ids were given.")
    if min(ids) < 0 or max(ids) >= below:
        raise ConfigError(
            f"The {what} ids must lie in 0..{below - 1} for this clip; "
            f"found {min(ids)} to {max(ids)}."
        )
    if len(set(ids)) != len(ids):
        raise ConfigError(f"The {what} ids name a token twice.")
