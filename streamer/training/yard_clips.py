"""Clips of the yard for training: made as they are needed, from seeds that no evaluation uses."""

# B batch  T frames

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from streamer.training.config import YardClipsConfig
from streamer.worlds.world import Stage
from streamer.worlds.yard import Yard, YardConfig

__all__ = ["FIRST_TRAINING_SEED", "YardClips"]

FIRST_TRAINING_SEED = 2**32
"""Sources and evaluations take seeds below it, trainings from it on."""


class YardClips(Dataset[Tensor]):
    """Batch number `step` -> `uint8 [B, T, side, side, 3]`, the same whenever it is asked for.

    Args:
        total: steps of the whole training; speeds rise with the part that is done.
    """

    def __init__(
        self, config: YardClipsConfig, *, batch: int, frames: int, total: int, seed: int
    ) -> None:
        self._config = config
        self._batch = batch
        self._frames = frames
        self._total = total
        self._seed = seed
        self._stage = Stage(height=config.side, width=config.side, fps=config.fps)

    def __len__(self) -> int:
        return self._total

    def __getitem__(self, step: int) -> Tensor:
        world = YardConfig(speed=self._speed(step))
        first = FIRST_TRAINING_SEED + (self._seed << 40) + step * self._batch
        clips = [self._clip(first + i, world) for i in range(self._batch)]
        return torch.from_numpy(np.stack(clips))

    def _clip(self, seed: int, world: YardConfig) -> np.ndarray:
        yard = Yard(seed=seed, stage=self._stage, config=world)
        return np.stack([yard.render(i) for i in range(self._frames)])

    def _speed(self, step: int) -> tuple[float, float]:
        begin, end = self._config.speed_up
        done = step / self._total
        part = 1.0 if done >= end else max(0.0, (done - begin) / max(end - begin, 1e-9))
        slow, fast = self._config.slow, self._config.fast
        low, high = (a + part * (b - a) for a, b in zip(slow, fast, strict=True))
        return low, high
