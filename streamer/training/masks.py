"""Which tokens of a clip are seen and which are to be predicted.

Two families: V-JEPA's multi-block tubes, and the future (past tubelets seen, coming ones
predicted), which is what a live stream needs.
"""

# B batch  N tokens  K context tokens  M target tokens

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from streamer.errors import ConfigError
from streamer.training.config import BlockMaskConfig

__all__ = ["BlockMasks", "Grid", "Masks", "future_masks"]

Grid = tuple[int, int, int]
"""(S, h, w): tubelets in time, rows, columns."""

_ATTEMPTS = 100
"""Draws per sample before one place is given to the context by force."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Masks:
    """Token ids of one batch, ascending in each row."""

    context_ids: Tensor
    """`int64 [B, K]`: what the encoder sees."""
    target_ids: Tensor
    """`int64 [B, M]`: what the predictor is asked for."""


def future_masks(grid: Grid, *, batch: int, context: int, ahead: int) -> Masks:
    """The first `context` tubelets are seen, the `ahead` ones after them predicted.

    Raises:
        ConfigError: less than one of either, or more than the grid has.
    """
    steps, rows, columns = grid
    if context < 1 or ahead < 1 or context + ahead > steps:
        raise ConfigError(
            f"{context} tubelets of context and {ahead} ahead do not fit into {steps} of a clip."
        )
    places = rows * columns
    ids = torch.arange((context + ahead) * places).expand(batch, -1)
    return Masks(context_ids=ids[:, : context * places], target_ids=ids[:, context * places :])


class BlockMasks:
    """Multi-block 3-D tubes: a new size per call, new places per sample.

    Sizes come from a counter, so that all workers and ranks of one step that count alike draw the
    same size; places come from the generator given with the call.

    Source: vjepa2 src/masks/multiseq_multiblock3d.py::_MaskGenerator (c2963a4), identical draws;
        differs in that a single remaining id is no error, that a block which would cover the whole
        clip is one column narrower (nothing would ever be left to see), and that after 100 empty
        draws one place is given to the context instead of drawing for ever.
    """

    def __init__(self, config: BlockMaskConfig, *, grid: Grid) -> None:
        self._config = config
        self._grid = grid
        self._count = grid[0] * grid[1] * grid[2]
        self.counter = -1
        """Calls so far, less one. Part of a training's state."""

    def __call__(self, batch: int, *, generator: torch.Generator | None = None) -> Masks:
        """Masks of one batch.

        Args:
            generator: for the places; None is torch's own.
        """
        size = self.next_size()
        hidden = [self._hidden(size, generator) for _ in range(batch)]
        context = [torch.nonzero(~each).flatten() for each in hidden]
        target = [torch.nonzero(each).flatten() for each in hidden]
        return self._collated(context, target)

    def next_size(self) -> Grid:
        """Count on, and draw the block size (tubelets, rows, columns) of this count."""
        self.counter += 1
        generator = torch.Generator().manual_seed(self.counter)
        uniform = [torch.rand(1, generator=generator).item() for _ in range(3)]
        steps, rows, columns = self._grid
        config = self._config
        temporal = _between(config.temporal_scale, uniform[0])
        area = int(rows * columns * _between(config.spatial_scale, uniform[1]))
        aspect = _between(config.aspect_ratio, uniform[2])
        deep = max(1, int(steps * temporal))
        high = min(rows, round(math.sqrt(area * aspect)))
        wide = min(columns, round(math.sqrt(area / aspect)))
        if (deep, high, wide) == self._grid and columns > 1:
            wide -= 1
        return deep, high, wide

    def _hidden(self, size: Grid, generator: torch.Generator | None) -> Tensor:
        """`bool [N]`, True where a token is to be predicted; not everywhere."""
        for _ in range(_ATTEMPTS):
            hidden = torch.zeros(self._grid, dtype=torch.bool)
            for _ in range(self._config.num_blocks):
                self._hide(hidden, size, generator)
            hidden[self._last_seen() :] = True
            if not hidden.all():
                return hidden.flatten()
        row, column = (self._draw(side, generator) for side in self._grid[1:])
        hidden[: self._last_seen(), row, column] = False
        return hidden.flatten()

    def _hide(self, hidden: Tensor, size: Grid, generator: torch.Generator | None) -> None:
        (deep, high, wide), (steps, rows, columns) = size, self._grid
        top = self._draw(rows - high + 1, generator)
        left = self._draw(columns - wide + 1, generator)
        start = self._draw(steps - deep + 1, generator)
        hidden[start : start + deep, top : top + high, left : left + wide] = True

    def _draw(self, below: int, generator: torch.Generator | None) -> int:
        return int(torch.randint(0, below, (1,), generator=generator))

    def _last_seen(self) -> int:
        """Tubelets that may be context at all."""
        return max(1, int(self._grid[0] * self._config.max_temporal_keep))

    def _collated(self, context: list[Tensor], target: list[Tensor]) -> Masks:
        """Cut to the batch's smallest counts: the first ids are kept, late tubelets go first."""
        config = self._config
        keep = min(len(each) for each in context)
        if config.max_keep is not None:
            keep = min(keep, config.max_keep)
        context = [each[:keep] for each in context]
        least = min(len(each) for each in target)
        target = [each[:least] for each in target]
        if config.complement == "targets":
            target = [self._rest(each) for each in context]
        elif config.complement == "context":
            context = [self._rest(each) for each in target]
        masks = Masks(context_ids=torch.stack(context), target_ids=torch.stack(target))
        if config.inverted:
            return Masks(context_ids=masks.target_ids, target_ids=masks.context_ids)
        return masks

    def _rest(self, ids: Tensor) -> Tensor:
        is_in = torch.zeros(self._count, dtype=torch.bool)
        is_in[ids] = True
        return torch.nonzero(~is_in).flatten()


def _between(bounds: tuple[float, float], part: float) -> float:
    low, high = bounds
    return low + part * (high - low)
