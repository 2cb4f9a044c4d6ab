"""Upstream's anticipation wrapper, number for number: what released probes read."""

# B batch  T frames  N tokens  P tokens predicted per step  D width

from __future__ import annotations

import torch
from torch import Tensor

from streamer.errors import ShapeMismatch
from streamer.futures.config import AnticipativeConfig, gap_steps
from streamer.futures.window import gap_ids, token_ids
from streamer.models.vjepa2 import VJepa2

__all__ = ["anticipative_tokens"]


@torch.inference_mode()
def anticipative_tokens(
    model: VJepa2,
    pixels_BCTHW: Tensor,
    anticipation_s: Tensor,
    *,
    config: AnticipativeConfig | None = None,
) -> Tensor:
    """Encoder tokens of a clip, followed by those predicted for some time after it.

    Args:
        pixels_BCTHW: normalised, `float [B, 3, T, H, W]`, square.
        anticipation_s: seconds between clip and prediction, `float64 [B]`.
        config: the wrapper's switches.

    Returns:
        `[B, N + num_steps * P, D]`; without encoder `[B, num_steps * P, D]`, without predictor
        `[B, N, D]`. Raw encoder tokens next to predictions in the layer-normed space.

    Raises:
        ShapeMismatch: another picture size than the model's, or not one time per clip.

    Source: vjepa2 evals/action_anticipation_frozen/modelcustom/vit_encoder_predictor_concat_ar.py
        ::AnticipativeWrapper.forward (c2963a4), identical.
    Note: with a gap and several steps time is inconsistent (a tubelet predicted after the gap is
        fed back as if it came right after the clip); tests/parity hold it.
    """
    config = config or AnticipativeConfig()
    _check(model, pixels_BCTHW, anticipation_s)
    tokens = model.encoder(pixels_BCTHW)
    if config.no_predictor:
        return tokens
    parts = [] if config.no_encoder else [tokens]
    parts += _predicted(model, tokens, anticipation_s, config)
    return torch.cat(parts, dim=1)


def _predicted(
    model: VJepa2, tokens_BND: Tensor, anticipation_s: Tensor, config: AnticipativeConfig
) -> list[Tensor]:
    tubelet, places = model.config.tubelet_size, model.config.grid_size**2
    batch, count, _ = tokens_BND.shape
    gaps = [gap_steps(each, fps=config.fps, tubelet=tubelet) for each in anticipation_s.tolist()]
    outputs = places * (max(config.num_output_frames, tubelet) // tubelet)
    context_ids = token_ids(0, count, batch=batch, device=tokens_BND.device)
    target_ids = gap_ids(
        count, outputs, gaps_B=torch.tensor(gaps, device=tokens_BND.device), places=places
    )
    rotation = model.predictor.rotation(context_ids, target_ids)
    predicted = []
    for _ in range(config.num_steps):
        step = model.predictor(tokens_BND, context_ids, target_ids, rotation=rotation)
        predicted.append(step)
        tokens_BND = torch.cat([tokens_BND[:, outputs:], step], dim=1)
    return predicted


def _check(model: VJepa2, pixels_BCTHW: Tensor, anticipation_s: Tensor) -> None:
    crop = model.config.crop_size
    if pixels_BCTHW.ndim != 5 or pixels_BCTHW.shape[3:] != (crop, crop):
        raise ShapeMismatch(
            f"Pixels must be [B, 3, T, {crop}, {crop}]; found {list(pixels_BCTHW.shape)}."
        )
    if anticipation_s.shape != pixels_BCTHW.shape[:1]:
        raise ShapeMismatch(
            f"{pixels_BCTHW.shape[0]} clips came with anticipation times of shape "
            f"{list(anticipation_s.shape)}."
        )
