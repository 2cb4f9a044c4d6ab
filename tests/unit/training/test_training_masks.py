"""Masks where the published generator gives no example: guards, and the future."""

from __future__ import annotations

import pytest
import torch

from streamer.errors import ConfigError
from streamer.training.config import LONG_RANGE, BlockMaskConfig
from streamer.training.masks import BlockMasks, future_masks

pytestmark = pytest.mark.unit


def test_the_future_comes_after_the_context() -> None:
    masks = future_masks((6, 2, 2), batch=3, context=4, ahead=2)
    assert masks.context_ids.tolist() == [list(range(16))] * 3
    assert masks.target_ids.tolist() == [list(range(16, 24))] * 3


@pytest.mark.parametrize(("context", "ahead"), [(0, 1), (1, 0), (5, 2)])
def test_a_future_that_does_not_fit_is_refused(context: int, ahead: int) -> None:
    with pytest.raises(ConfigError, match="do not fit"):
        future_masks((6, 2, 2), batch=1, context=context, ahead=ahead)


def test_on_a_small_grid_something_is_always_left_to_see() -> None:
    make = BlockMasks(BlockMaskConfig(num_blocks=8, spatial_scale=(1.0, 1.0)), grid=(3, 2, 2))
    for _ in range(20):
        masks = make(4)
        assert masks.context_ids.shape[1] >= 1
        for seen, asked in zip(masks.context_ids, masks.target_ids, strict=True):
            assert not set(seen.tolist()) & set(asked.tolist())


def test_one_place_alone_is_seen_where_nothing_else_could_be() -> None:
    make = BlockMasks(BlockMaskConfig(num_blocks=1, spatial_scale=(1.0, 1.0)), grid=(2, 1, 1))
    masks = make(2)
    assert masks.context_ids.tolist() == [[0, 1]] * 2


def test_equal_counters_and_seeds_give_equal_masks() -> None:
    def make() -> torch.Tensor:
        maker = BlockMasks(LONG_RANGE, grid=(8, 4, 4))
        maker.counter = 41
        return maker(3, generator=torch.Generator().manual_seed(5)).target_ids

    assert torch.equal(make(), make())


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_blocks": 0},
        {"spatial_scale": (0.0, 0.5)},
        {"temporal_scale": (0.5, 1.5)},
        {"aspect_ratio": (2.0, 1.0)},
        {"max_temporal_keep": 0.0},
        {"max_keep": 0},
        {"complement": "both"},
    ],
)
def test_what_cannot_be_masked_is_refused(wrong: dict) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        BlockMaskConfig(**wrong)
