"""One table from our tensor names to those of transformers; both directions come from it.

Our names are upstream's (facebookresearch/vjepa2) under `encoder.`, `predictor.`, `classifier.`.
Transformers splits fused projections and stacks the mask tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import torch
from torch import Tensor

__all__ = ["KeyPair", "Shapes", "hf_shapes", "key_pairs", "to_hf", "to_ours"]

Shapes = dict[str, tuple[int, ...]]

_BLOCK: Final = {
    "norm1": ("norm1",),
    "attn.qkv": ("attention.query", "attention.key", "attention.value"),
    "attn.proj": ("attention.proj",),
    "norm2": ("norm2",),
    "mlp.fc1": ("mlp.fc1",),
    "mlp.fc2": ("mlp.fc2",),
    "mlp.fc3": ("mlp.fc3",),
}
_POOLER_BLOCK: Final = {
    "norm1": ("layer_norm1",),
    "attn.qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attn.proj": ("self_attn.out_proj",),
    "norm2": ("layer_norm2",),
    "mlp.fc1": ("mlp.fc1",),
    "mlp.fc2": ("mlp.fc2",),
}
_CROSS_BLOCK: Final = {
    "norm1": ("layer_norm1",),
    "xattn.q": ("cross_attn.q_proj",),
    "xattn.kv": ("cross_attn.k_proj", "cross_attn.v_proj"),
    "norm2": ("layer_norm2",),
    "mlp.fc1": ("mlp.fc1",),
    "mlp.fc2": ("mlp.fc2",),
}
_MASK_TOKENS: Final = "predictor.mask_tokens.#"


def _under(ours: str, hf: str, table: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {ours + key: tuple(hf + name for name in names) for key, names in table.items()}


_TABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "encoder.patch_embed.proj": ("encoder.embeddings.patch_embeddings.proj",),
    **_under("encoder.blocks.#.", "encoder.layer.#.", _BLOCK),
    "encoder.norm": ("encoder.layernorm",),
    "predictor.predictor_embed": ("predictor.embeddings.predictor_embeddings",),
    _MASK_TOKENS: ("predictor.embeddings.mask_tokens",),
    **_under("predictor.predictor_blocks.#.", "predictor.layer.#.", _BLOCK),
    "predictor.predictor_norm": ("predictor.layernorm",),
    "predictor.predictor_proj": ("predictor.proj",),
    "classifier.pooler.query_tokens": ("pooler.query_tokens",),
    **_under("classifier.pooler.blocks.#.", "pooler.self_attention_layers.#.", _POOLER_BLOCK),
    **_under(
        "classifier.pooler.cross_attention_block.", "pooler.cross_attention_layer.", _CROSS_BLOCK
    ),
    "classifier.linear": ("classifier",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """Tensors of ours and of transformers that hold the same numbers."""

    ours: tuple[str, ...]
    hf: tuple[str, ...]
    join: Literal["same", "fused", "stacked"]
    """`fused`: ours is the concatenation of theirs. `stacked`: theirs is the stack of ours."""


def key_pairs(ours: Iterable[str], *, prefixed: bool) -> list[KeyPair]:
    """Pair our tensor names with those of transformers.

    Args:
        ours: names of a `VJepa2` state dict.
        prefixed: put `vjepa2.` before encoder and predictor, as classification checkpoints have.
    """
    pairs: dict[tuple[str, ...], KeyPair] = {}
    for key in ours:
        hf = _translate(key, prefixed=prefixed)
        if key.startswith(_MASK_TOKENS.removesuffix("#")):
            before = pairs[hf].ours if hf in pairs else ()
            pairs[hf] = KeyPair(ours=(*before, key), hf=hf, join="stacked")
        else:
            pairs[hf] = KeyPair(ours=(key,), hf=hf, join="fused" if len(hf) > 1 else "same")
    return list(pairs.values())


def _translate(key: str, *, prefixed: bool) -> tuple[str, ...]:
    stem, dot, leaf = key.rpartition(".")
    if leaf not in ("weight", "bias"):
        stem, dot, leaf = key, "", ""
    number = re.search(r"\.(\d+)(?=\.|$)", stem)
    pattern = stem if number is None else stem[: number.start(1)] + "#" + stem[number.end(1) :]
    index = "" if number is None else number[1]
    prefix = "vjepa2." if prefixed and not key.startswith("classifier.") else ""
    return tuple(prefix + name.replace("#", index) + dot + leaf for name in _TABLE[pattern])


def hf_shapes(pairs: Iterable[KeyPair], ours: Shapes) -> Shapes:
    """Shapes that a checkpoint of transformers must have for ours to be these."""
    out: Shapes = {}
    for pair in pairs:
        first, *rest = ours[pair.ours[0]]
        for name in pair.hf:
            match pair.join:
                case "same":
                    out[name] = (first, *rest)
                case "fused":
                    out[name] = (first // len(pair.hf), *rest)
                case "stacked":
                    out[name] = (len(pair.ours), first, *rest)
    return out


def to_ours(pairs: Iterable[KeyPair], get: Callable[[str], Tensor]) -> dict[str, Tensor]:
    """Tensors under our names, read one by one with `get(hf_name)`."""
    out: dict[str, Tensor] = {}
    for pair in pairs:
        match pair.join:
            case "same":
                out[pair.ours[0]] = get(pair.hf[0])
            case "fused":
                out[pair.ours[0]] = torch.cat([get(name) for name in pair.hf])
            case "stacked":
                out |= zip(pair.ours, get(pair.hf[0]).clone(), strict=True)
    return out


def to_hf(pairs: Iterable[KeyPair], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors under the names of transformers; none shares memory with another."""
    out: dict[str, Tensor] = {}
    for pair in pairs:
        match pair.join:
            case "same":
                out[pair.hf[0]] = ours[pair.ours[0]].contiguous()
            case "fused":
                parts = ours[pair.ours[0]].chunk(len(pair.hf))
                out |= {name: part.clone() for name, part in zip(pair.hf, parts, strict=True)}
            case "stacked":
                out[pair.hf[0]] = torch.stack([ours[name] for name in pair.ours])
    return out
