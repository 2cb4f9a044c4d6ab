"""What a model makes of yards: latents of clips, their futures, and what then really came."""

# N clips  P tokens per tubelet  D width  T frames

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from streamer.futures.rollout import Rollout
from streamer.latents.encoder import Encoder
from streamer.models.vjepa2 import VJepa2
from streamer.training.objective import normed
from streamer.worlds.world import Truth
from streamer.worlds.yard import Yard

__all__ = ["Foresight", "Seen", "render"]

_BATCH = 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """Yards through a model's eyes. All latents layer-normed, one tubelet: `[N, P, D]`."""

    present: Tensor
    """The newest tubelet of the clip that ends now."""
    futures: dict[int, Tensor]
    """Step -> as the rollout foretold it."""
    direct: dict[int, Tensor]
    """Step -> as the predictor foretells it in one call."""
    came: dict[int, Tensor]
    """Step -> the newest tubelet of the clip that ends then."""
    now: list[Truth]
    then: dict[int, list[Truth]]


class Foresight:
    """Encoder and predictor of one model, as the service uses them, for many clips at once.

    Args:
        steps: tubelets ahead that are looked at.
    """

    def __init__(self, model: VJepa2, *, steps: Sequence[int]) -> None:
        self.steps = tuple(steps)
        self.frames = model.config.frames_per_clip
        self.tubelet = model.config.tubelet_size
        self.side = model.config.grid_size
        self._predictor = model.predictor
        self._encoder = Encoder(model)
        self._rollout = Rollout(model)
        self._places = self.side**2

    @property
    def last(self) -> int:
        """Number of the newest frame of a clip that ends now."""
        return self.frames - 1

    def latents(self, pixels: Tensor) -> Tensor:
        """Raw latents of clips `uint8 [N, T, H, W, 3]` -> `[N, tokens, D]`."""
        return torch.cat([self._encoder.encode(each) for each in torch.split(pixels, _BATCH)])

    def next_tubelet(self, latents: Tensor) -> Tensor:
        """What the rollout says of the step after these clips, layer-normed `[N, P, D]`."""
        return torch.cat([next(self._futures(each, 1)) for each in torch.split(latents, _BATCH)])

    def newest(self, latents: Tensor) -> Tensor:
        """Layer-normed newest tubelet."""
        return normed(latents[:, -self._places :])

    def see(self, yards: Sequence[Yard]) -> Seen:
        """Encode, foretell, and encode what came."""
        length = self.frames + max(self.steps) * self.tubelet
        pixels = render(yards, range(length))
        raw = self.latents(pixels[:, : self.frames])
        ends = {step: self.last + step * self.tubelet for step in self.steps}
        foretold: list[list[Tensor]] = [
            list(self._futures(each, max(self.steps))) for each in torch.split(raw, _BATCH)
        ]
        return Seen(
            present=self.newest(raw),
            futures={k: torch.cat([each[k - 1] for each in foretold]) for k in self.steps},
            direct={k: self._direct(raw, k) for k in self.steps},
            came={
                k: self.newest(self.latents(pixels[:, end + 1 - self.frames : end + 1]))
                for k, end in ends.items()
            },
            now=[yard.truth(self.last) for yard in yards],
            then={k: [yard.truth(end) for yard in yards] for k, end in ends.items()},
        )

    def _futures(self, raw: Tensor, steps: int) -> Iterator[Tensor]:
        grid = (self.frames // self.tubelet, self.side, self.side)
        fps = 1.0  # times do not matter here
        for future in self._rollout.contiguous(raw, grid=grid, fps=fps, steps=steps):
            yield normed(future.tokens)

    @torch.inference_mode()
    def _direct(self, raw: Tensor, step: int) -> Tensor:
        context = raw[:, self._places :]  # as the rollout's: a tubelet less than a clip
        count = context.shape[1]
        ids = torch.arange(count).expand(len(raw), -1)
        target = torch.arange(self._places).expand(len(raw), -1) + count
        target = target + (step - 1) * self._places
        found = [
            self._predictor(c, i, t)
            for c, i, t in zip(
                *(torch.split(each, _BATCH) for each in (context, ids, target)), strict=True
            )
        ]
        return normed(torch.cat(found))


def render(yards: Sequence[Yard], frames: range) -> Tensor:
    """`uint8 [N, T, H, W, 3]`."""
    return torch.from_numpy(
        np.stack([np.stack([yard.render(i) for i in frames]) for yard in yards])
    )
