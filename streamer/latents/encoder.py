"""Clips of uint8 pictures to latents: permute, normalise and encode, all on the model's device."""

# B batch  T frames  H W pixels  C channels  N tokens  D width

from __future__ import annotations

import torch
from torch import Tensor

from streamer.errors import NumericalError, ShapeMismatch
from streamer.latents.config import EncoderConfig
from streamer.latents.preprocess import MEAN, STD
from streamer.models.vjepa2 import VJepa2

__all__ = ["Encoder"]


class Encoder:
    """The model's encoder as the service uses it. Not thread-safe: one thread at a time.

    Args:
        model: on its device, in eval mode.
        config: what to compute in.
    """

    def __init__(self, model: VJepa2, *, config: EncoderConfig | None = None) -> None:
        self._config = config or EncoderConfig()
        self._network = model.encoder
        self._crop = model.config.crop_size
        self._patch = model.config.patch_size
        self._tubelet = model.config.tubelet_size
        weight = next(self._network.parameters())
        self.device = weight.device
        self._weight_dtype = weight.dtype
        self._dtype = torch.bfloat16 if self._config.dtype == "bfloat16" else self._weight_dtype
        mean, std = torch.tensor(MEAN), torch.tensor(STD)
        self._scale = (1 / (255 * std)).to(self.device)
        self._shift = (-mean / std).to(self.device)

    @property
    def dtype(self) -> torch.dtype:
        """Of the latents."""
        return self._dtype

    def grid(self, frames: int, *, height: int, width: int) -> tuple[int, int, int]:
        """(S, h, w) of a clip of that size."""
        return frames // self._tubelet, height // self._patch, width // self._patch

    def check(self, shape: tuple[int, ...], dtype: object) -> None:
        """Whether clips `[B, T, H, W, 3]` of that shape and dtype fit the model.

        Args:
            dtype: of torch or NumPy.

        Raises:
            ShapeMismatch: with the expected pattern and what was found.
        """
        name = str(dtype).removeprefix("torch.")
        if name == "uint8" and len(shape) == 5 and self._fits(*shape):
            return
        raise ShapeMismatch(
            f"Clips must be uint8 [B, T, H, W, 3] with T a multiple of {self._tubelet} and H, W "
            f"multiples of {self._patch}, all at least once; found {name} {list(shape)}."
        )

    def _fits(self, batch: int, frames: int, height: int, width: int, channels: int) -> bool:
        sizes = ((frames, self._tubelet), (height, self._patch), (width, self._patch))
        whole = all(size >= unit and size % unit == 0 for size, unit in sizes)
        return whole and batch >= 1 and channels == 3

    @torch.inference_mode()
    def encode(self, clips_BTHWC: Tensor, *, context_ids_BK: Tensor | None = None) -> Tensor:
        """Encode a batch of clips.

        Args:
            clips_BTHWC: `uint8 [B, T, H, W, 3]` RGB, on any device; only read.
            context_ids_BK: tokens to look at, `int64 [B, K]`; the encoder does not see the rest.
                None: all of them.

        Returns:
            Raw latents (after the affine final norm) `[B, N, D]` or `[B, K, D]` on the model's
            device, token order time-major or that of the ids, in `dtype`.

        Raises:
            ShapeMismatch: T, H or W do not fit the model, or ids not the clips.
            ValueError: an id that the clips do not have.
            NumericalError: a latent is not finite.
        """
        self.check(tuple(clips_BTHWC.shape), clips_BTHWC.dtype)
        pixels = self._normalised(clips_BTHWC.to(self.device, non_blocking=True))
        with self._autocast():
            latents = self._network(pixels, masks=context_ids_BK)
        latents = latents.to(self._dtype)
        _check_finite(latents)
        return latents

    def warm_up(self, *, frames: int, batch: int = 1) -> None:
        """Run once on grey clips of the model's crop, so that the first real one is not slow."""
        shape = (batch, frames, self._crop, self._crop, 3)
        self.encode(torch.full(shape, 128, dtype=torch.uint8))

    def _normalised(self, clips_BTHWC: Tensor) -> Tensor:
        scaled = torch.addcmul(self._shift, clips_BTHWC.to(torch.float32), self._scale)
        return scaled.permute(0, 4, 1, 2, 3).to(self._weight_dtype)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(
            self.device.type,
            dtype=torch.bfloat16,
            enabled=self._dtype is not self._weight_dtype,
        )


def _check_finite(latents_BND: Tensor) -> None:
    finite = latents_BND.isfinite().flatten(1).all(dim=1)
    if not bool(finite.all()):  # the one wait for the device
        rows = [row for row, good in enumerate(finite.tolist()) if not good]
        raise NumericalError(f"The encoder gave values that are not finite for clips {rows}.")
