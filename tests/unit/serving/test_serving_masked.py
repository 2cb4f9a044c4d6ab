"""Masked prediction of one clip, and the ids that make no sense."""

from __future__ import annotations

import pytest
import torch

from streamer.errors import ConfigError, ShapeMismatch
from streamer.serving.masked import predict_masked

pytestmark = pytest.mark.unit


def test_the_context_does_not_see_the_targets(small_model, make_clip) -> None:
    one, other = make_clip(seed=0).frames.copy(), make_clip(seed=0).frames.copy()
    other[:2, :16, :16] = 0  # token 0
    ids = {"context_ids": [5, 1, 2], "target_ids": [0, 20]}
    found = [predict_masked(small_model, frames, **ids) for frames in (one, other)]
    assert found[0].prediction.shape == (2, 24)
    assert found[0].context.shape == (3, 24)
    assert torch.equal(found[0].prediction, found[1].prediction)
    other[:2, :16, 16:] = 0  # token 1
    third = predict_masked(small_model, other, **ids)
    assert not torch.equal(found[0].prediction, third.prediction)


@pytest.mark.parametrize(
    ("context", "target"),
    [([], [0]), ([0], []), ([16], [0]), ([0], [32]), ([0, 0], [1]), ([0], [1, 1]), ([-1], [1])],
)
def test_ids_that_cannot_be(small_model, make_clip, context, target) -> None:
    with pytest.raises(ConfigError):
        predict_masked(small_model, make_clip().frames, context_ids=context, target_ids=target)


def test_frames_that_do_not_fit(small_model, make_clip) -> None:
    with pytest.raises(ShapeMismatch):
        predict_masked(small_model, make_clip(size=20).frames, context_ids=[0], target_ids=[1])
