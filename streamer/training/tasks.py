"""What the n-th step predicts: drawn from the seed and the number of the step alone."""

from __future__ import annotations

import numpy as np
import torch

from streamer.training.config import TaskConfig
from streamer.training.learner import RolloutTask, Task, TubeTask
from streamer.training.masks import BlockMasks, Grid, future_masks

__all__ = ["Tasks"]


class Tasks:
    """Mask token 0 is the future's, the kinds of tubes have those after it; with `all_tubes` every
    kind uses token 0, as V-JEPA 2's training does.

    Args:
        places: (rows, columns) of a tubelet.
        total: steps of the whole training.
    """

    def __init__(
        self, config: TaskConfig, *, places: tuple[int, int], total: int, seed: int
    ) -> None:
        self._config = config
        self._places = places
        self._total = total
        self._seed = seed
        grid = (config.tubelets, *places)
        self._tubes = [BlockMasks(kind, grid=grid) for kind in config.tubes]

    def at(self, step: int, *, batch: int) -> list[Task]:
        """Tasks of one step, counted from 0."""
        rng = np.random.default_rng([self._seed, step, 11])
        if self._config.all_tubes:
            return [
                self._tube(kind, step, batch=batch, index=0) for kind in range(len(self._tubes))
            ]
        if rng.random() >= self._config.future:
            kind = int(rng.integers(len(self._tubes)))
            return [self._tube(kind, step, batch=batch, index=1 + kind)]
        return [self._future(rng, step, batch=batch)]

    def _future(self, rng: np.random.Generator, step: int, *, batch: int) -> Task:
        config = self._config
        context = int(rng.choice(config.contexts))
        has_begun = step >= config.rollout_after * self._total
        if has_begun and rng.random() < config.rollout:
            return RolloutTask(context=context, steps=int(rng.choice(config.rollout_steps)))
        ahead = int(rng.choice(config.ahead))
        grid: Grid = (context + ahead, *self._places)
        masks = future_masks(grid, batch=batch, context=context, ahead=ahead)
        return TubeTask(masks=masks, is_future=True)

    def _tube(self, kind: int, step: int, *, batch: int, index: int) -> TubeTask:
        maker = self._tubes[kind]
        maker.counter = step - 1
        generator = torch.Generator().manual_seed(hash_of(self._seed, step, kind))
        return TubeTask(masks=maker(batch, generator=generator), mask_index=index)


def hash_of(*numbers: int) -> int:
    """One seed of several numbers, the same on every machine."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
