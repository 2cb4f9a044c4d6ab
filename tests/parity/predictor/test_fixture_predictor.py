"""Masked predictor outputs of upstream."""

from __future__ import annotations

import pytest
import torch

from streamer.models.predictor import Predictor

pytestmark = pytest.mark.parity


@pytest.fixture(scope="module")
def masked(published, sizes):
    file = published("masked_predictor")
    predictor = Predictor(sizes(file.config | {"num_heads": 1, "depth": 1}, file.config))
    file.load(predictor, "predictor")
    return file, predictor


@torch.inference_mode()
def test_every_mask_token(masked, same) -> None:
    file, predictor = masked
    given = [file.given[key] for key in ("ctx", "masks_x", "masks_y")]
    same(predictor(*given), file.expected["pred_default"])
    names = [key for key in file.expected if key.startswith("pred_mask_index")]
    assert names
    for name in names:
        index = int(name.removeprefix("pred_mask_index"))
        same(predictor(*given, mask_index=index), file.expected[name])


@torch.inference_mode()
def test_all_tokens_in_ascending_order(masked, same) -> None:
    file, predictor = masked
    given = [file.given[key] for key in ("ctx", "masks_x", "masks_y")]
    same(predictor(*given, return_all_tokens=True), file.expected["pred_all_tokens_sorted"])


@torch.inference_mode()
def test_future_and_overlapping_targets(masked, same) -> None:
    file, predictor = masked
    full, ids = file.given["full"], file.given["full_masks_x"]
    same(predictor(full, ids, file.given["full_masks_y"]), file.expected["pred_future"])
    same(predictor(full, ids, file.given["fullfull_masks_y"]), file.expected["pred_fullfull"])
    again = predictor.rotation(ids, file.given["full_masks_y"])
    found = predictor(full, ids, file.given["full_masks_y"], rotation=again)
    same(found, file.expected["pred_future"])


@torch.inference_mode()
def test_mask_token_0_is_another_prediction(masked) -> None:
    file, predictor = masked
    given = [file.given[key] for key in ("ctx", "masks_x", "masks_y")]
    assert (predictor(*given, mask_index=0) - file.expected["pred_default"]).abs().max() > 0.5
