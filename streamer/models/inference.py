"""Sizes of an upstream file from the shapes of its tensors; it stores no config.

Head counts leave no trace in shapes: they come from the released models (64 channels per head; 80
at width 1280; 32 in predictors) or from the caller. So do crop and frames.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from torch import Tensor

from streamer.errors import CheckpointError, ConfigError
from streamer.models.blocks import swiglu_width
from streamer.models.config import VJepa2Config
from streamer.models.probe_config import ProbeConfig

__all__ = ["infer_config", "infer_probe_config"]

_HEAD_DIMS: Final = {1280: 80}
_POOLER_HEADS: Final = 16

State = Mapping[str, Tensor]


def infer_config(
    encoder: State,
    predictor: State,
    *,
    crop: int = 256,
    frames: int = 64,
    heads: int | None = None,
    pred_heads: int | None = None,
) -> VJepa2Config:
    """The config of an encoder and its masked predictor.

    Raises:
        CheckpointError: a tensor that sizes are read from is missing.
        ConfigError: the number of heads must be given, or sizes do not go together.
    """
    width, channels, tubelet, patch, _ = _shape(encoder, "patch_embed.proj.weight", dims=5)
    pred_width, _ = _shape(predictor, "predictor_embed.weight", dims=2)
    use_silu, wide, ratio = _mlp(encoder, "blocks.0.mlp", width)
    pred_use_silu, pred_wide, pred_ratio = _mlp(predictor, "predictor_blocks.0.mlp", pred_width)
    return VJepa2Config(
        patch_size=patch,
        crop_size=crop,
        frames_per_clip=frames,
        tubelet_size=tubelet,
        in_chans=channels,
        hidden_size=width,
        num_hidden_layers=_count(encoder, "blocks."),
        num_attention_heads=heads or _heads(width, _HEAD_DIMS.get(width, 64), "--heads"),
        mlp_ratio=ratio,
        qkv_bias="blocks.0.attn.qkv.bias" in encoder,
        pred_hidden_size=pred_width,
        pred_num_hidden_layers=_count(predictor, "predictor_blocks."),
        pred_num_attention_heads=pred_heads or _heads(pred_width, 32, "--pred-heads"),
        pred_num_mask_tokens=_count(predictor, "mask_tokens."),
        pred_mlp_ratio=pred_ratio,
        use_silu=use_silu,
        wide_silu=wide and pred_wide,
        pred_use_silu=pred_use_silu,
    )


def infer_probe_config(state: State, *, heads: int | None = None) -> ProbeConfig:
    """The config of a probe (16 heads in every released one).

    Raises:
        CheckpointError: a tensor that sizes are read from is missing.
        ConfigError: sizes do not go together.
    """
    _, queries, width = _shape(state, "pooler.query_tokens", dims=3)
    fc1 = "pooler.cross_attention_block.mlp.fc1.weight"
    depth = 1 + sum(
        1 for key in state if key.startswith("pooler.blocks.") and key.endswith("norm1.weight")
    )
    counts = {
        field: state[f"{head}.weight"].shape[0]
        for field, head in _HEADS.items()
        if f"{head}.weight" in state
    }
    values: dict[str, Any] = {
        "hidden_size": width,
        "num_attention_heads": heads or _POOLER_HEADS,
        "depth": depth,
        "num_queries": queries,
        "complete_block": fc1 in state,
        **counts,
    }
    return ProbeConfig.from_dict(values)


_HEADS: Final = {
    "num_labels": "linear",
    "num_verbs": "verb_classifier",
    "num_nouns": "noun_classifier",
    "num_actions": "action_classifier",
}


def _shape(state: State, key: str, *, dims: int) -> tuple[int, ...]:
    tensor = state.get(key)
    if tensor is None or tensor.ndim != dims:
        found = "missing" if tensor is None else f"of shape {list(tensor.shape)}"
        raise CheckpointError(f"Cannot read sizes from the file: {key} is {found}.")
    return tuple(tensor.shape)


def _count(state: State, prefix: str) -> int:
    return len({key.removeprefix(prefix).split(".")[0] for key in state if key.startswith(prefix)})


def _heads(width: int, head_dim: int, option: str) -> int:
    if width % head_dim:
        raise ConfigError(
            f"The file does not say how many attention heads share its width of {width}; "
            f"give the number with {option}."
        )
    return width // head_dim


def _mlp(state: State, stem: str, width: int) -> tuple[bool, bool, float]:
    """(SwiGLU, its wide form, ratio) of an MLP."""
    hidden, _ = _shape(state, f"{stem}.fc1.weight", dims=2)
    if f"{stem}.fc3.weight" not in state:
        return False, True, _ratio(width, hidden)
    if swiglu_width(4 * width, wide=True) == hidden:
        return True, True, 4.0
    return True, False, _ratio(width, hidden)


def _ratio(width: int, hidden: int) -> float:
    ratio = hidden / width
    return ratio if int(width * ratio) == hidden else math.nextafter(ratio, math.inf)
