"""The rotation alone, one axis slice at a time."""

from __future__ import annotations

import pytest
import torch

from streamer.models.rope import axis_rotation, rotate

pytestmark = pytest.mark.parity


def test_axis_slices(published, same) -> None:
    file = published("rope")
    names = sorted({key.split(".")[0] for key in file.given})
    assert names
    for name in names:
        x = file.given[f"{name}.x"]
        for positions, out in (("pos", "y"), ("pos_bh", "y_bh"), ("pos_float", "y_float")):
            table = axis_rotation(
                file.given[f"{name}.{positions}"], width=x.shape[-1], form="tiled"
            )
            same(rotate(x, table), file.expected[f"{name}.{out}"], atol=1e-6, rtol=1e-6)


def test_the_corrected_form_is_another_function(published) -> None:
    file = published("rope")
    name = sorted(file.given)[0].split(".")[0]
    x = file.given[f"{name}.x"]
    table = axis_rotation(file.given[f"{name}.pos"], width=x.shape[-1], form="interleaved")
    assert (rotate(x, table) - file.expected[f"{name}.y"]).abs().max() > 0.5
    torch.testing.assert_close(rotate(x, table).norm(dim=-1), x.norm(dim=-1))
