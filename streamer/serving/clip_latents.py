"""Latents of one clip, or a masked prediction inside it, as the content of a safetensors file."""

# N tokens  K context tokens  M target tokens  D width

from __future__ import annotations

import json
from collections.abc import Sequence

import torch
from safetensors.torch import save
from torch import Tensor

from streamer.latents.encoder import Encoder
from streamer.models.vjepa2 import VJepa2
from streamer.records import Clip
from streamer.serving.masked import predict_masked
from streamer.serving.transfer import read_tensor

__all__ = ["clip_latents"]


def clip_latents(
    model: VJepa2,
    clip: Clip,
    *,
    context_ids: Sequence[int] | None = None,
    target_ids: Sequence[int] | None = None,
    start_s: float = 0.0,
    encoder: Encoder | None = None,
) -> bytes:
    """Compute, and write down with what is needed to read it.

    Without targets: `latents [N, D]`, raw. With them: `prediction [M, D]`, layer-normed, the raw
    latents `context [K, D]` of the tokens that were seen, `context_ids [K]`, `target_ids [M]`.
    Metadata, each JSON unless a plain string: model, fingerprint, trained, dtype, normed (tensor
    -> whether layer-normed), grid (tubelets, rows, columns), start_s, fps, first_frame,
    last_frame, padded, filled, config.

    Args:
        context_ids: tokens to see; None: all but the targets.
        target_ids: tokens to predict, which may lie after the clip.
        start_s: where the clip begins in its file.
        encoder: over `model`, with the dtype to compute in; None: as the weights are held.

    Raises:
        ConfigError: ids that the clip does not have.
        ShapeMismatch: the clip does not fit the model.
    """
    if target_ids is None:
        tensors = {"latents": _latents(encoder or Encoder(model), clip)}
    else:
        tensors = _prediction(model, clip, seen=context_ids, wanted=list(target_ids))
    whole = {name: tensor.to("cpu").contiguous() for name, tensor in tensors.items()}
    content: bytes = save(whole, metadata=_metadata(model, clip, whole, start_s=start_s))
    return content


def _latents(encoder: Encoder, clip: Clip) -> Tensor:
    encoder.check((1, *clip.frames.shape), clip.frames.dtype)
    return encoder.encode(read_tensor(clip.frames)[None])[0]


def _prediction(
    model: VJepa2, clip: Clip, *, seen: Sequence[int] | None, wanted: list[int]
) -> dict[str, Tensor]:
    if seen is None:
        seen = sorted(set(range(_count(model, clip))) - set(wanted))
    found = predict_masked(model, clip.frames, context_ids=list(seen), target_ids=wanted)
    return {
        "prediction": found.prediction,
        "context": found.context,
        "context_ids": torch.tensor(seen),
        "target_ids": torch.tensor(wanted),
    }


def _count(model: VJepa2, clip: Clip) -> int:
    tubelets: int = clip.frames.shape[0] // model.config.tubelet_size
    return tubelets * model.config.grid_size**2


def _metadata(
    model: VJepa2, clip: Clip, tensors: dict[str, Tensor], *, start_s: float
) -> dict[str, str]:
    side = model.config.grid_size
    values = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
    facts = {
        "model": model.name,
        "fingerprint": model.fingerprint,
        "trained": model.trained,
        "dtype": str(next(iter(values.values())).dtype).removeprefix("torch."),
        "normed": {name: name == "prediction" for name in values},
        "grid": [clip.frames.shape[0] // model.config.tubelet_size, side, side],
        "start_s": start_s,
        "fps": clip.fps,
        "first_frame": clip.first_frame,
        "last_frame": clip.last_frame,
        "padded": clip.padded,
        "filled": clip.filled,
        "config": model.config.to_dict(),
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in facts.items()
    }
