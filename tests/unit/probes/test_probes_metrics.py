"""Metrics against scikit-learn, and where that has none, against what they must be."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as reference

from streamer.errors import ConfigError
from streamer.probes.ek100 import clip_indices
from streamer.probes.metrics import (
    auroc,
    average_precision,
    calibration_error,
    r2,
    rankme,
    top_k_accuracy,
)

pytestmark = pytest.mark.unit

_MARKS = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=40).filter(
    lambda rows: len({mark for _, mark in rows}) == 2
)


@settings(max_examples=60, deadline=None)
@given(rows=_MARKS)
def test_rankings_with_ties(rows: list[tuple[int, bool]]) -> None:
    scores, marks = (torch.tensor(column) for column in zip(*rows, strict=True))
    assert auroc(scores, marks) == pytest.approx(reference.roc_auc_score(marks, scores))
    assert average_precision(scores, marks) == pytest.approx(
        reference.average_precision_score(marks, scores)
    )


@pytest.mark.parametrize("rank", [auroc, average_precision])
@pytest.mark.parametrize("value", [0, 1])
def test_one_class_cannot_be_ranked(rank, value: int) -> None:
    with pytest.raises(ConfigError, match="one class"):
        rank(torch.arange(4.0), torch.full((4,), value))


def test_shares_and_fits() -> None:
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(50, 7, generator=generator)
    labels = torch.randint(0, 7, (50,), generator=generator)
    for k in (1, 3):
        expected = reference.top_k_accuracy_score(labels, scores, k=k, labels=range(7))
        assert top_k_accuracy(scores, labels, k=k) == pytest.approx(expected)
    actual = torch.randn(50, 2, generator=generator)
    predicted = actual + 0.3 * torch.randn(50, 2, generator=generator)
    assert r2(predicted, actual) == pytest.approx(reference.r2_score(actual, predicted))


def test_the_effective_rank_counts_directions() -> None:
    generator = torch.Generator().manual_seed(4)
    few = torch.randn(500, 3, generator=generator) @ torch.randn(3, 20, generator=generator)
    assert rankme(few) <= 3.01
    assert rankme(torch.randn(5000, 20, generator=generator)) > 19
    assert rankme(torch.ones(10, 5)) == pytest.approx(1, abs=0.01)


def test_a_calibrated_forecast_has_no_error() -> None:
    said = torch.tensor([0.25] * 4 + [0.75] * 4)
    assert calibration_error(said, torch.tensor([1, 0, 0, 0, 1, 1, 1, 0])) == pytest.approx(0)
    assert calibration_error(said, torch.zeros(8)) == pytest.approx(0.5)


def test_a_video_that_is_too_slow_is_refused() -> None:
    with pytest.raises(ConfigError, match="no 8 frames/s"):
        clip_indices(start_frame=0, stop_frame=9, video_fps=5, fps=8, frames=4, anticipation_s=1.0)
