"""The rotation against a scalar-by-scalar form of the paper's formula with upstream's quirk."""

from __future__ import annotations

import math

import pytest
import torch

from streamer.models.rope import Rope, grid_positions, rotate

pytestmark = pytest.mark.parity


def _reference(x: torch.Tensor, positions: tuple[float, float, float]) -> torch.Tensor:
    d = x.shape[-1]
    a = 2 * ((d // 3) // 2)
    y = x.clone().double()
    for axis, position in enumerate(positions):
        for c in range(a):
            angle = position * 10000 ** (-(c % (a // 2)) / (a / 2))
            i = axis * a + c
            partner = -x[i + 1] if c % 2 == 0 else x[i - 1]
            y[i] = x[i] * math.cos(angle) + partner * math.sin(angle)
    return y


@pytest.mark.parametrize("head_dim", [12, 14, 20, 26, 32, 40, 52, 64, 80, 88, 15, 33])
def test_tiled_rotation_of_scattered_tokens(head_dim: int) -> None:
    rows, columns = 3, 5
    ids = torch.tensor([44, 0, 7, 31, 400, 15])
    x = torch.randn(1, 1, len(ids), head_dim, generator=torch.Generator().manual_seed(head_dim))
    rotation = Rope(head_dim=head_dim, form="tiled").for_ids(ids, rows=rows, columns=columns)
    found = rotate(x, rotation)[0, 0]
    for n, i in enumerate(ids.tolist()):
        place = i % (rows * columns)
        position = (i // (rows * columns), place // columns, place % columns)
        expected = _reference(x[0, 0, n], position)
        torch.testing.assert_close(found[n].double(), expected, atol=1e-5, rtol=0)


def test_tiled_is_no_isometry_and_interleaved_is_one() -> None:
    x = torch.randn(1, 1, 30, 64, generator=torch.Generator().manual_seed(1))
    ids = torch.arange(30)
    norms = {
        form: rotate(x, Rope(head_dim=64, form=form).for_ids(ids, rows=2, columns=3)).norm(dim=-1)
        for form in ("tiled", "interleaved")
    }
    torch.testing.assert_close(norms["interleaved"], x.norm(dim=-1))
    assert (norms["tiled"] / x.norm(dim=-1) - 1).abs().max() > 0.02


def test_shifting_changes_tiled_logits_only() -> None:
    q, k = torch.randn(2, 1, 1, 24, 64, generator=torch.Generator().manual_seed(2))
    ids = torch.arange(24)

    def logits(form: str, shift: int) -> torch.Tensor:
        depth, height, width = grid_positions(ids, rows=2, columns=3)
        table = Rope(head_dim=64, form=form).for_positions(depth + shift, height, width)
        return rotate(q, table) @ rotate(k, table).mT

    torch.testing.assert_close(
        logits("interleaved", 7), logits("interleaved", 0), atol=1e-4, rtol=0
    )
    assert (logits("tiled", 7) - logits("tiled", 0)).abs().max() > 1.0
