"""Latents as colours: the three directions in which a model's tokens differ most, as red, green and
blue.

What is unusual here: the basis is made once per model, from what the model itself says of a fixed
set of synthetic clips, never from the stream that is shown. So one colour means one thing over
time, horizons, streams, replicas and restarts.
"""

# B batch  T frames  N tokens  P tokens per tubelet (h*w)  D width

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from streamer.errors import ModelError
from streamer.latents.encoder import Encoder
from streamer.models.config import VJepa2Config
from streamer.models.vjepa2 import VJepa2
from streamer.records import Pixels
from streamer.worlds.registry import make_world
from streamer.worlds.world import Stage

__all__ = ["PictureBasis", "basis_clips", "basis_of", "fit_basis"]

_EPS = 1e-5
"""Of the layer norm in which predictions live."""
_WORLDS = ("bounce", "drift", "pulse", "zone")
"""Never to be changed: another set is another meaning of every colour."""
_FRAMES, _FPS = 8, 4.0
_TOKENS = 1024
"""So many are enough for three directions; a model of few tokens gets more clips."""
_MAX_CLIPS = 64
_TAILS = 0.01
"""Part of the basis set that is brighter than white, and darker than black, in each colour."""
_MIN_SPAN = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureBasis:
    """An affine map from a layer-normed token to red, green and blue, 0 to 1."""

    weight: Tensor
    """`float32 [D, 3]`."""
    bias: Tensor
    """`float32 [3]`."""

    def paint(self, tokens_PD: Tensor) -> Tensor:
        """Colours of tokens.

        Args:
            tokens_PD: raw or layer-normed, `[..., D]`, of any dtype, on the basis's device.

        Returns:
            `uint8 [..., 3]` on that device. Does not wait for it.
        """
        normed = layer_norm(tokens_PD.float(), tokens_PD.shape[-1:], eps=_EPS)
        colours = torch.matmul(normed, self.weight) + self.bias
        return (colours.clamp(0.0, 1.0) * 255.0 + 0.5).to(torch.uint8)


@torch.inference_mode()
def basis_of(model: VJepa2) -> PictureBasis:
    """The model's own basis, on its device. Runs its encoder over `basis_clips`; takes seconds for
    a large model on a CPU.

    It computes in the dtype of the weights whatever the service computes in, so that replicas of
    one model agree.

    Raises:
        ModelError: its tokens do not differ in three directions.
        NumericalError: a latent is not finite.
    """
    encoder = Encoder(model)
    latents = [
        encoder.encode(torch.from_numpy(clip)[None])[0].cpu() for clip in basis_clips(model.config)
    ]
    basis = fit_basis(torch.cat(latents))
    return PictureBasis(weight=basis.weight.to(encoder.device), bias=basis.bias.to(encoder.device))


def basis_clips(config: VJepa2Config) -> list[Pixels]:
    """The fixed set: each world in turn, another seed each time around.

    Returns:
        Clips `uint8 [T, crop, crop, 3]` of 8 frames at 4 fps (less for a model trained on less): 4
        clips for a released model, more for one with fewer tokens per clip.
    """
    tubelet, crop = config.tubelet_size, config.crop_size
    frames = max(tubelet, min(_FRAMES, config.frames_per_clip) // tubelet * tubelet)
    tokens = frames // tubelet * config.grid_size**2
    count = min(_MAX_CLIPS, max(len(_WORLDS), -(-_TOKENS // tokens)))
    stage = Stage(height=crop, width=crop, fps=_FPS)
    return [
        _clip(_WORLDS[i % len(_WORLDS)], seed=i // len(_WORLDS), stage=stage, frames=frames)
        for i in range(count)
    ]


def _clip(name: str, *, seed: int, stage: Stage, frames: int) -> Pixels:
    world = make_world(name, seed=seed, stage=stage)
    return np.stack([world.render(i) for i in range(frames)])


def fit_basis(tokens_ND: Tensor) -> PictureBasis:
    """Principal directions of layer-normed tokens, strongest first.

    A direction points to where the set has its longer tail (the third moment is positive): what is
    rare in the set is bright, what is common is dark. The range is that of the set without one
    hundredth at each end.

    Args:
        tokens_ND: raw or layer-normed, `[N, D]`, on the CPU; N at least 4.

    Raises:
        ModelError: they do not differ in three directions.
    """
    tokens = layer_norm(tokens_ND.double(), tokens_ND.shape[-1:], eps=_EPS)
    mean = tokens.mean(dim=0)
    centred = tokens - mean
    _, directions = torch.linalg.eigh(centred.T @ centred)
    directions_D3 = directions[:, -3:].flip(1)
    places_N3 = centred @ directions_D3
    signs = torch.where(places_N3.pow(3).mean(dim=0) < 0, -1.0, 1.0)
    directions_D3, places_N3 = directions_D3 * signs, places_N3 * signs
    low, high = _range(places_N3)
    if places_N3.shape[1] < 3 or bool((high - low < _MIN_SPAN).any()):
        raise ModelError("The model's tokens do not differ in three directions; no colours fit.")
    weight = directions_D3 / (high - low)
    bias = -(mean @ weight) - low / (high - low)
    return PictureBasis(weight=weight.float(), bias=bias.float())


def _range(places_N3: Tensor) -> tuple[Tensor, Tensor]:
    ends: Sequence[Tensor] = torch.quantile(
        places_N3, torch.tensor([_TAILS, 1 - _TAILS], dtype=places_N3.dtype), dim=0
    ).unbind(0)
    return ends[0], ends[1]
