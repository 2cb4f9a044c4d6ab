"""The closed-form readout."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import Ridge

from streamer.errors import ShapeMismatch
from streamer.probes.linear import fit_ridge

pytestmark = pytest.mark.unit


def test_it_is_ridge_regression_on_scaled_features() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(60, 9, generator=generator) * 3 + 1
    y = x[:, :2] @ torch.randn(2, 2, generator=generator) + torch.randn(60, 2, generator=generator)
    scaled = (x - x.mean(0)) / x.std(0)
    expected = Ridge(alpha=0.1 * 60).fit(scaled, y).predict(scaled)
    found = fit_ridge(x, y, penalty=0.1)(x)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float32))


def test_samples_and_targets_must_belong_together() -> None:
    with pytest.raises(ShapeMismatch, match=r"\[3, 2\].*\[4, 1\]"):
        fit_ridge(torch.zeros(3, 2), torch.zeros(4, 1))
