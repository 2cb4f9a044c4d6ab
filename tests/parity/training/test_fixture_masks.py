"""Multi-block masks, draw for draw."""

from __future__ import annotations

import pytest
import torch

from streamer.training.config import BlockMaskConfig
from streamer.training.masks import BlockMasks

pytestmark = pytest.mark.parity

_RENAMED = {"full_complement": "targets", "pred_full_complement": "context"}


def _maker(file, name: str) -> BlockMasks:
    given = dict(file.config["configs"][name])
    options = {k: v for k, v in given.items() if k in BlockMaskConfig.__dataclass_fields__}
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    for theirs, ours in _RENAMED.items():
        if given.get(theirs):
            options["complement"] = ours
    options["inverted"] = given.get("inv_block", False)
    geometry = file.config["geometry"]
    side = geometry["crop"][0] // geometry["patch"][0]
    grid = (geometry["frames"] // geometry["tub"], side, side)
    return BlockMasks(BlockMaskConfig(**options), grid=grid)


def test_sizes_and_places_are_upstreams(published) -> None:
    file = published("masks")
    geometry = file.config["geometry"]
    assert len(file.config["configs"]) == 8
    for name in file.config["configs"]:
        maker = _maker(file, name)
        sizes = [maker.next_size() for _ in range(16)]
        assert sizes == [tuple(row) for row in file.expected[f"{name}.block_sizes"].tolist()]
        maker, i = _maker(file, name), 0
        while f"{name}.call{i}.enc" in file.expected:
            generator = torch.Generator().manual_seed(geometry["seed"] + i)
            masks = maker(geometry["B"], generator=generator)
            context = file.expected[f"{name}.call{i}.enc"]
            target = file.expected[f"{name}.call{i}.pred"]
            assert torch.equal(masks.context_ids, context.long()), (name, i)
            assert torch.equal(masks.target_ids, target.long()), (name, i)
            i += 1
        assert i > 1


def test_keep_ratios_are_upstreams(published) -> None:
    file = published("masks")
    for name, config in file.config["configs"].items():
        maker, generator = _maker(file, name), torch.Generator().manual_seed(7)
        calls = [maker(config["stat_batch"], generator=generator) for _ in range(400)]
        count = maker._count
        seen = sum(call.context_ids.shape[1] for call in calls) / (400 * count)
        asked = sum(call.target_ids.shape[1] for call in calls) / (400 * count)
        assert seen == pytest.approx(config["enc_keep_mean"], abs=0.01), name
        assert asked == pytest.approx(config["pred_keep_mean"], abs=0.01), name
