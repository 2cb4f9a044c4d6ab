"""The rollout against a plain rewriting of upstream's loop: copies, no tables, no buffer."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from streamer.futures.anticipative import anticipative_tokens
from streamer.futures.config import AnticipativeConfig, RolloutConfig
from streamer.futures.rollout import Rollout
from streamer.models.config import VJepa2Config
from streamer.models.vjepa2 import VJepa2

pytestmark = pytest.mark.parity

SIDE, TUBELETS = 2, 6
PLACES = SIDE**2


@pytest.fixture(scope="module")
def model() -> VJepa2:
    torch.manual_seed(0)
    config = VJepa2Config(
        crop_size=32,
        frames_per_clip=2 * TUBELETS,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        pred_hidden_size=36,
        pred_num_hidden_layers=2,
        pred_num_attention_heads=2,
    )
    model = VJepa2(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


@torch.no_grad()
def _reference(model: VJepa2, x: Tensor, *, gaps: list[int], steps: int) -> Tensor:
    batch, count, _ = x.shape
    context = torch.arange(count).repeat(batch, 1)
    target = torch.stack([torch.arange(PLACES) + count + gap * PLACES for gap in gaps])
    accumulated = []
    for _ in range(steps):
        predicted = model.predictor(x, context, target, mask_index=1)
        accumulated.append(predicted)
        x = torch.cat([x, predicted], dim=1)[:, PLACES:]
    return torch.cat(accumulated, dim=1)


def _latents(batch: int, tubelets: int = TUBELETS) -> Tensor:
    return torch.randn(batch, tubelets * PLACES, 48, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("steps", [1, 3, 5])
def test_contiguous_is_the_wrapper_without_gap_on_the_newest_tubelets(
    model: VJepa2, steps: int
) -> None:
    latents = _latents(2)
    futures = list(
        Rollout(model).contiguous(latents, grid=(TUBELETS, SIDE, SIDE), fps=4.0, steps=steps)
    )
    found = torch.cat([future.tokens for future in futures], dim=1)
    expected = _reference(model, latents[:, PLACES:], gaps=[0, 0], steps=steps)
    torch.testing.assert_close(found, expected, atol=3e-5, rtol=1e-4)
    assert not any(future.is_extrapolated for future in futures)


def test_contiguous_on_a_whole_short_clip_equals_the_wrapper(model: VJepa2) -> None:
    pixels = torch.randn(1, 3, 6, 32, 32, generator=torch.Generator().manual_seed(2))
    config = AnticipativeConfig(num_steps=3, no_encoder=True)
    expected = anticipative_tokens(
        model, pixels, torch.zeros(1, dtype=torch.float64), config=config
    )
    with torch.inference_mode():
        latents = model.encoder(pixels)[0]
    futures = Rollout(model).contiguous(latents, grid=(3, SIDE, SIDE), fps=4.0, steps=3)
    found = torch.cat([future.tokens for future in futures])
    torch.testing.assert_close(found, expected[0], atol=3e-5, rtol=1e-4)


def test_gaps_of_a_batch(model: VJepa2) -> None:
    latents = _latents(2)
    (future,) = Rollout(model).gap(latents, grid=(TUBELETS, SIDE, SIDE), fps=4.0, gaps=[2])
    expected = _reference(model, latents, gaps=[2, 2], steps=1)
    torch.testing.assert_close(future.tokens, expected, atol=3e-5, rtol=1e-4)


def test_bfloat16_stays_near(model: VJepa2) -> None:
    latents = _latents(1)
    grid = (TUBELETS, SIDE, SIDE)
    exact = list(Rollout(model).contiguous(latents, grid=grid, fps=4.0, steps=2))
    rollout = Rollout(model, config=RolloutConfig(dtype="bfloat16"))
    rounded = list(rollout.contiguous(latents, grid=grid, fps=4.0, steps=2))
    error = (exact[-1].tokens - rounded[-1].tokens).abs().mean() / exact[-1].tokens.std()
    assert 0 < error < 0.1
