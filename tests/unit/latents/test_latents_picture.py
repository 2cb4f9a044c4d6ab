"""Colours of latents: what the basis promises, and that it is the same wherever it is made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import layer_norm

from streamer.errors import ModelError
from streamer.latents.encoder import Encoder
from streamer.latents.picture import basis_clips, basis_of, fit_basis
from streamer.models.config import PRESETS, VJepa2Config
from streamer.models.vjepa2 import VJepa2

pytestmark = pytest.mark.unit

SMALL = VJepa2Config(
    crop_size=32,
    frames_per_clip=8,
    hidden_size=24,
    num_hidden_layers=1,
    num_attention_heads=2,
    pred_hidden_size=24,
    pred_num_hidden_layers=1,
    pred_num_attention_heads=2,
    trained=False,
)


def model(dtype: torch.dtype = torch.float32) -> VJepa2:
    generator = torch.Generator().manual_seed(3)
    made = VJepa2(SMALL, name="small")
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.2, generator=generator)
    return made.eval().to(dtype)


def tokens(count: int = 2000, *, width: int = 16) -> torch.Tensor:
    """Three strong directions of falling strength, each with a long tail to one side."""
    generator = torch.Generator().manual_seed(0)
    strengths = torch.tensor([4.0, 2.0, 1.0])
    tails = torch.empty(count, 3).exponential_(generator=generator) * strengths
    mixing = torch.linalg.qr(torch.randn(width, 3, generator=generator))[0]
    noise = torch.randn(count, width, generator=generator)
    return 10 * noise[:1] + tails @ mixing.T + 0.05 * noise


def test_the_range_is_that_of_the_set_and_its_longer_tail_is_bright() -> None:
    found = tokens()
    colours = fit_basis(found).paint(found).float()
    assert colours.shape == (2000, 3)
    for channel in colours.unbind(1):
        # one hundredth at each end lies beyond
        assert 15 <= (channel == 0).sum() <= 30
        assert 15 <= (channel == 255).sum() <= 30
        assert channel.mean() > channel.median()


def test_the_first_colour_is_the_strongest_difference() -> None:
    found = tokens()
    weight = fit_basis(found).weight
    spread = (layer_norm(found, (16,)) @ (weight / weight.norm(dim=0))).std(dim=0)
    assert spread[0] > 1.5 * spread[1] > 1.5 * spread[2]


@pytest.mark.parametrize("turn", [-1.0, 1.0])
def test_the_sign_does_not_depend_on_what_the_solver_gives(
    monkeypatch: pytest.MonkeyPatch, turn: float
) -> None:
    found, expected = tokens(), fit_basis(tokens())
    solve = torch.linalg.eigh

    def turned(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, vectors = solve(matrix)
        return values, vectors * turn

    monkeypatch.setattr(torch.linalg, "eigh", turned)
    torch.testing.assert_close(fit_basis(found).weight, expected.weight)


def test_a_token_has_one_colour_raw_or_normed_and_in_any_dtype() -> None:
    found = tokens(64)
    basis = fit_basis(tokens())
    colours = basis.paint(found).int()
    assert (basis.paint(layer_norm(found, (16,))).int() - colours).abs().max() <= 1
    assert (basis.paint(found.bfloat16()).int() - colours).abs().max() <= 8
    assert basis.paint(found.reshape(4, 16, 16)).shape == (4, 16, 3)


def test_tokens_without_three_directions_are_refused() -> None:
    with pytest.raises(ModelError, match="three directions"):
        fit_basis(torch.ones(100, 16))
    with pytest.raises(ModelError, match="three directions"):
        fit_basis(tokens()[:, :2])


@pytest.mark.parametrize(("preset", "count"), [("tiny", 16), ("vitl", 4), ("vitg-384", 4)])
def test_large_models_get_few_clips(preset: str, count: int) -> None:
    # Rendered small here; how many there are does not depend on the pixels.
    config = PRESETS[preset]
    patch = 16 * config.patch_size // config.crop_size or 1
    small = replace(config, crop_size=patch * config.grid_size, patch_size=patch)
    clips = basis_clips(small)
    assert (len(clips), clips[0].shape[0]) == (count, 8)


def test_the_clips_are_fixed() -> None:
    first, second = basis_clips(SMALL), basis_clips(SMALL)
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    assert len({clip.tobytes() for clip in first}) == len(first)


def test_another_process_finds_the_same_basis() -> None:
    ours = basis_of(model())
    program = (
        "import json, sys, torch; sys.path.insert(0, sys.argv[1])\n"
        "torch.set_num_threads(2)\n"
        "from test_latents_picture import basis_of, model\n"
        "basis = basis_of(model())\n"
        "sys.stdout.write(json.dumps([basis.weight.tolist(), basis.bias.tolist()]))"
    )
    folder = __file__.rpartition("/")[0]
    done = subprocess.run(
        [sys.executable, "-c", program, folder],
        env=os.environ | {"OMP_WAIT_POLICY": "passive"},  # its threads do not spin for each other
        capture_output=True,
        text=True,
        check=True,
    )
    weight, bias = json.loads(done.stdout)
    torch.testing.assert_close(torch.tensor(weight), ours.weight, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(torch.tensor(bias), ours.bias, rtol=1e-3, atol=1e-4)


def test_weights_held_in_bfloat16_give_nearly_the_same_colours() -> None:
    full, half = model(), model(torch.bfloat16)
    latents = Encoder(full).encode(torch.from_numpy(basis_clips(SMALL)[0])[None])[0]
    one, other = basis_of(full).paint(latents).int(), basis_of(half).paint(latents).int()
    assert (one - other).abs().float().mean() < 8
