"""What is in a model: what `streamer models inspect` shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from streamer.errors import ConfigError, NotFound
from streamer.models.checkpoint import on_meta
from streamer.models.config import PRESETS
from streamer.models.fingerprint import fingerprint, hash_tensors
from streamer.models.folder import TensorFolder, read_json
from streamer.models.hub import fetch, is_hub_id
from streamer.models.probe import load_probe
from streamer.models.upstream import ENCODER_ENTRIES, read_upstream
from streamer.models.vjepa2 import VJepa2

__all__ = ["Bf16Error", "Entry", "Inspection", "TensorFact", "inspect_model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFact:
    key: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A set of tensors: a whole folder, or one entry of an upstream file."""

    name: str
    parameters: int
    tensors: tuple[TensorFact, ...]
    sha256: str | None = None
    """Over the tensors; None for a preset, which has none."""
    fingerprint: str | None = None
    """Where the entry holds an encoder."""
    mask_token_norms: tuple[float, ...] = ()
    """Where it holds a predictor. A token of norm 0 was never trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bf16Error:
    """How far latents move when a model runs in bfloat16, after the affine-free layer norm (so
    that 1 is one standard deviation), on a random clip of two tubelets."""

    mean: float
    largest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    name: str
    kind: Literal["preset", "model", "probe", "upstream"]
    trained: bool | None
    """None where nobody can know."""
    config: dict[str, Any] | None
    entries: tuple[Entry, ...]
    bf16_error: Bf16Error | None = None
    """Only when asked for, and of a folder."""


def inspect_model(
    name: str, *, crop: int = 256, revision: str | None = None, bf16: bool = False
) -> Inspection:
    """Look into a preset, a folder, an upstream `.pt` file or a model of the hub.

    Args:
        crop: picture size that fingerprints of a `.pt` file are made for.
        bf16: also measure what bfloat16 costs in exactness (of a model folder).

    Raises:
        NotFound: none of these.
        ConfigError, CheckpointError: as for loading; what is shown is known to load.
    """
    path = Path(name)
    if name in PRESETS:
        return _preset(name)
    if path.is_file():
        return _upstream(path, crop=crop)
    if not path.is_dir():
        if not is_hub_id(name):
            raise NotFound(f"{name!r} is no preset ({', '.join(PRESETS)}), folder, file or hub id.")
        path = fetch(name, revision=revision)
    if read_json(path / "config.json").get("model_type") == "streamer_probe":
        return _probe(path)
    return _folder(path, name, bf16=bf16)


def _preset(name: str) -> Inspection:
    model = on_meta(lambda: VJepa2(PRESETS[name], name=name))
    entry = _entry("", model.state_dict(), hashed=False)
    config = PRESETS[name].to_dict()
    return Inspection(name=name, kind="preset", trained=False, config=config, entries=(entry,))


def _folder(path: Path, name: str, *, bf16: bool) -> Inspection:
    model = VJepa2.from_pretrained(path)
    entry = _entry(
        "",
        _stored(path),
        fingerprint=model.fingerprint,
        mask_tokens=list(model.predictor.mask_tokens),
    )
    return Inspection(
        name=name,
        kind="model",
        trained=model.trained,
        config=model.config.to_dict(),
        entries=(entry,),
        bf16_error=_bf16_error(model) if bf16 else None,
    )


@torch.inference_mode()
def _bf16_error(model: VJepa2) -> Bf16Error:
    config = model.config
    shape = (1, config.in_chans, 2 * config.tubelet_size, config.crop_size, config.crop_size)
    pixels = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    exact = layer_norm(model.encoder(pixels).float(), [config.hidden_size])
    rough = layer_norm(model.bfloat16().encoder(pixels).float(), [config.hidden_size])
    difference = (exact - rough).abs()
    return Bf16Error(mean=float(difference.mean()), largest=float(difference.max()))


def _probe(path: Path) -> Inspection:
    load_probe(path)
    entry = _entry("", _stored(path))
    config = read_json(path / "config.json")
    return Inspection(name=path.name, kind="probe", trained=None, config=config, entries=(entry,))


def _stored(path: Path) -> dict[str, Tensor]:
    with TensorFolder(path) as source:
        return {key: source.get(key) for key in source.shapes}


def _upstream(path: Path, *, crop: int) -> Inspection:
    if crop < 1:
        raise ConfigError(f"crop is {crop}; it must be at least 1.")
    file = read_upstream(path)
    entries = []
    for name, state in file.entries.items():
        tokens = [t for key, t in state.items() if key.startswith("mask_tokens.")]
        patch = state.get("patch_embed.proj.weight")
        mark = None
        if name in ENCODER_ENTRIES and patch is not None and patch.ndim == 5:
            mark = fingerprint(state, crop=crop, tubelet=patch.shape[2])
        entries.append(_entry(name, state, fingerprint=mark, mask_tokens=tokens))
    return Inspection(
        name=path.name, kind="upstream", trained=None, config=None, entries=tuple(entries)
    )


def _entry(
    name: str,
    tensors: Mapping[str, Tensor],
    *,
    hashed: bool = True,
    fingerprint: str | None = None,
    mask_tokens: list[Tensor] | None = None,
) -> Entry:
    return Entry(
        name=name,
        parameters=sum(math.prod(t.shape) for t in tensors.values()),
        tensors=tuple(
            TensorFact(key=key, shape=tuple(t.shape), dtype=str(t.dtype).removeprefix("torch."))
            for key, t in tensors.items()
        ),
        sha256=hash_tensors(tensors) if hashed else None,
        fingerprint=fingerprint,
        mask_token_norms=tuple(
            float(torch.linalg.vector_norm(t.detach().float())) for t in mask_tokens or ()
        ),
    )
