"""Upstream `.pt` files to folders: what `streamer models convert` does."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn

from streamer.errors import CheckpointError, ConfigError
from streamer.models.config import PRESETS, VJepa2Config
from streamer.models.fingerprint import hash_tensors
from streamer.models.folder import read_json
from streamer.models.inference import infer_config, infer_probe_config
from streamer.models.pooler import ActionLogits
from streamer.models.probe import load_probe, probe_from_upstream, probe_state, save_probe
from streamer.models.upstream import UpstreamFile, choose_encoder, read_upstream
from streamer.models.vjepa2 import VJepa2

__all__ = ["Conversion", "SizeHints", "convert", "resolve_config"]

_log = logging.getLogger(__name__)

_TOLERANCE: Final = 3e-5
"""Of outputs. Tensors must agree exactly, but kernels round by how their memory is aligned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeHints:
    """What shapes do not tell. None: as the preset says, else as in the released models."""

    preset: str | None = None
    config: Path | None = None
    """A `config.json`."""
    crop: int | None = None
    frames: int | None = None
    heads: int | None = None
    pred_heads: int | None = None

    def __post_init__(self) -> None:
        if self.preset is not None and self.preset not in PRESETS:
            raise ConfigError(f"There is no preset {self.preset!r}; use {', '.join(PRESETS)}.")
        if self.preset is not None and self.config is not None:
            raise ConfigError("Give a preset or a config file, not both.")
        numbers = (self.crop, self.frames, self.heads, self.pred_heads)
        if any(number is not None and number < 1 for number in numbers):
            raise ConfigError("Crop, frames and head counts are at least 1.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What was written, and from what."""

    kind: Literal["model", "probe"]
    entry: str
    """The encoder or classifier of the file that was used."""
    sha256: str
    """Of that entry's tensors, 64 hex digits."""
    folder: str
    fingerprint: str | None
    """Of the model; None for a probe."""
    max_difference: float | None
    """Of outputs on random input, source against folder, relative where they exceed 1; None if not
    checked."""


def convert(
    path: Path,
    out: Path,
    *,
    kind: Literal["auto", "model", "probe"] = "auto",
    entry: str | None = None,
    classifier: int = 0,
    hints: SizeHints | None = None,
    check: bool = False,
    overwrite: bool = False,
) -> Conversion:
    """Write a folder with `config.json` and `model.safetensors`.

    Args:
        path: upstream file.
        out: folder to make; must be empty or new unless `overwrite`.
        kind: what the file must be; `auto` looks.
        entry: which encoder; None takes the first of target_encoder, ema_encoder, encoder.
        classifier: which probe, where a file holds several.
        hints: sizes that the file does not tell.
        check: load the folder again and compare outputs with the source's on random input.

    Raises:
        NotFound: no such file.
        ConfigError: the folder is not empty, or sizes are wrong or must be given.
        CheckpointError: the file is damaged, of another kind, does not fit, or fails the check.
    """
    if not overwrite and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} exists and is not empty; choose another folder or overwrite it.")
    file = read_upstream(path)
    found = "probe" if file.kind == "probe" else "model"
    if kind not in ("auto", found):
        raise CheckpointError(f"{path} is a {found} file, not a {kind} file.")
    hints = hints or SizeHints()
    if found == "probe":
        return _convert_probe(file, out, classifier=classifier, heads=hints.heads, check=check)
    return _convert_model(file, out, entry=entry, hints=hints, check=check)


def resolve_config(
    file: UpstreamFile, encoder: Mapping[str, Tensor], hints: SizeHints
) -> VJepa2Config:
    """Sizes from a preset or config file (as far as hints do not overrule), else from shapes."""
    given = {
        "crop_size": hints.crop,
        "frames_per_clip": hints.frames,
        "num_attention_heads": hints.heads,
        "pred_num_attention_heads": hints.pred_heads,
    }
    changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if hints.preset is not None:
        return replace(PRESETS[hints.preset], **changes)
    if hints.config is not None:
        return replace(VJepa2Config.from_dict(read_json(hints.config)), **changes)
    return infer_config(
        encoder,
        file.entries.get("predictor", {}),
        crop=hints.crop or 256,
        frames=hints.frames or 64,
        heads=hints.heads,
        pred_heads=hints.pred_heads,
    )


def _convert_model(
    file: UpstreamFile, out: Path, *, entry: str | None, hints: SizeHints, check: bool
) -> Conversion:
    if file.kind == "action_conditioned":
        raise CheckpointError(
            f"{file.path} holds an action-conditioned predictor; only models with a masked "
            "predictor can be converted so far."
        )
    entry, encoder = choose_encoder(file, entry)
    config = resolve_config(file, encoder, hints)
    source = VJepa2.from_upstream(file, config=config, entry=entry)
    source.save_pretrained(out)
    reloaded = VJepa2.from_pretrained(out)
    return Conversion(
        kind="model",
        entry=entry,
        sha256=hash_tensors(encoder),
        folder=str(out),
        fingerprint=reloaded.fingerprint,
        max_difference=_check_models(source, reloaded) if check else None,
    )


def _convert_probe(
    file: UpstreamFile, out: Path, *, classifier: int, heads: int | None, check: bool
) -> Conversion:
    state = probe_state(file, classifier=classifier)
    sha256 = hash_tensors(state)
    _log.info(
        "upstream probe chosen",
        extra={"file": str(file.path), "classifier": classifier, "sha256": sha256},
    )
    config = infer_probe_config(state, heads=heads)
    source = probe_from_upstream(file, config=config, classifier=classifier)
    save_probe(source, out, config=config)
    tokens = torch.randn(2, 16, config.hidden_size, generator=torch.Generator().manual_seed(0))
    return Conversion(
        kind="probe",
        entry=f"classifiers.{classifier}",
        sha256=sha256,
        folder=str(out),
        fingerprint=None,
        max_difference=_check_probes(source, load_probe(out), tokens) if check else None,
    )


@torch.inference_mode()
def _check_models(source: VJepa2, reloaded: VJepa2) -> float:
    config = source.config
    shape = (1, config.in_chans, 2 * config.tubelet_size, config.crop_size, config.crop_size)
    pixels = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    tokens = source.encoder(pixels)
    pairs = [(tokens, reloaded.encoder(pixels))]
    ids = torch.arange(tokens.shape[1]).unsqueeze(0)
    ahead = ids[:, : config.grid_size**2] + ids.shape[1]
    for index in range(config.pred_num_mask_tokens):
        one, other = (
            model.predictor(tokens, ids, ahead, mask_index=index) for model in (source, reloaded)
        )
        pairs.append((one, other))
    return _largest_difference(pairs, source, reloaded)


@torch.inference_mode()
def _check_probes(source: nn.Module, reloaded: nn.Module, tokens: Tensor) -> float:
    outputs = zip(_outputs(source(tokens)), _outputs(reloaded(tokens)), strict=True)
    return _largest_difference(list(outputs), source, reloaded)


def _outputs(logits: Tensor | ActionLogits) -> list[Tensor]:
    if isinstance(logits, Tensor):
        return [logits]
    return [t for t in (logits.action, logits.verb, logits.noun) if t is not None]


def _largest_difference(
    pairs: list[tuple[Tensor, Tensor]], source: nn.Module, reloaded: nn.Module
) -> float:
    largest = max(float((a - b).abs().max() / b.abs().max().clamp(min=1)) for a, b in pairs)
    kept = reloaded.state_dict()
    changed = [key for key, t in source.state_dict().items() if not torch.equal(t, kept[key])]
    if changed or not largest <= _TOLERANCE:
        raise CheckpointError(
            f"The written {type(source).__name__} differs from its source: outputs on random "
            f"input by {largest:.3g}, tensors {', '.join(changed[:8]) or 'none'}. "
            "Do not use the folder."
        )
    return largest
