"""uint8 clips in, latents out; normalisation and permutation happen inside."""

from __future__ import annotations

import pytest
import torch

from streamer.errors import ConfigError, NumericalError, ShapeMismatch
from streamer.latents.config import EncoderConfig
from streamer.latents.encoder import Encoder
from streamer.latents.preprocess import MEAN, STD
from streamer.models.config import VJepa2Config
from streamer.models.vjepa2 import VJepa2

pytestmark = pytest.mark.unit


def _model() -> VJepa2:
    torch.manual_seed(0)
    config = VJepa2Config(
        crop_size=32,
        frames_per_clip=4,
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        pred_hidden_size=24,
        pred_num_hidden_layers=1,
        pred_num_attention_heads=2,
    )
    return VJepa2(config).eval()


@pytest.fixture(scope="module")
def model() -> VJepa2:
    return _model()


def _clips(batch: int = 2, frames: int = 4, height: int = 32, width: int = 32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    shape = (batch, frames, height, width, 3)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def _reference(model: VJepa2, clips: torch.Tensor) -> torch.Tensor:
    pixels = clips.permute(0, 4, 1, 2, 3).float() / 255
    mean, std = (torch.tensor(each).view(1, 3, 1, 1, 1) for each in (MEAN, STD))
    with torch.no_grad():
        return model.encoder((pixels - mean) / std)


def test_equals_the_plain_way(model: VJepa2) -> None:
    found = Encoder(model).encode(_clips())
    torch.testing.assert_close(found, _reference(model, _clips()), atol=1e-5, rtol=1e-5)
    assert found.shape == (2, 8, 24)
    assert found.dtype is torch.float32


def test_other_lengths_and_pictures_that_are_not_square(model: VJepa2) -> None:
    encoder = Encoder(model)
    clips = _clips(frames=6, height=16, width=48)
    assert encoder.encode(clips).shape == (2, 9, 24)
    assert encoder.grid(6, height=16, width=48) == (3, 1, 3)


def test_the_context_is_encoded_without_the_rest(model: VJepa2) -> None:
    ids = torch.tensor([[5, 0, 2]])
    one, other = _clips(1), _clips(1)
    other[:, 2:, :16, :16] = 0  # token 4 only
    encoder = Encoder(model)
    found = [encoder.encode(clip, context_ids_BK=ids) for clip in (one, other)]
    assert found[0].shape == (1, 3, 24)
    assert torch.equal(*found)
    assert not torch.equal(encoder.encode(one), encoder.encode(other))


def test_bfloat16_is_near_and_comes_out_as_such(model: VJepa2) -> None:
    encoder = Encoder(model, config=EncoderConfig(dtype="bfloat16"))
    found = encoder.encode(_clips())
    assert found.dtype is encoder.dtype is torch.bfloat16
    error = (found.float() - _reference(model, _clips())).abs().mean()
    assert 0 < error < 0.05
    whole = Encoder(_model().to(torch.bfloat16))
    assert whole.encode(_clips()).dtype is torch.bfloat16


@pytest.mark.parametrize(
    "clips",
    [
        torch.zeros(1, 4, 32, 32, 3),
        torch.zeros(4, 32, 32, 3, dtype=torch.uint8),
        torch.zeros(1, 3, 4, 32, 32, dtype=torch.uint8),
        torch.zeros(1, 3, 32, 32, 3, dtype=torch.uint8),
        torch.zeros(1, 4, 30, 32, 3, dtype=torch.uint8),
        torch.zeros(1, 4, 32, 40, 3, dtype=torch.uint8),
        torch.zeros(1, 0, 32, 32, 3, dtype=torch.uint8),
        torch.zeros(0, 4, 32, 32, 3, dtype=torch.uint8),
        torch.zeros(1, 4, 32, 32, 4, dtype=torch.uint8),
    ],
    ids=lambda clips: f"{clips.dtype}{list(clips.shape)}",
)
def test_what_does_not_fit_is_said(model: VJepa2, clips: torch.Tensor) -> None:
    with pytest.raises(ShapeMismatch, match=r"uint8 \[B, T, H, W, 3\].*found"):
        Encoder(model).encode(clips)


def test_damaged_weights_are_noticed() -> None:
    model = _model()
    with torch.no_grad():
        model.encoder.norm.weight.fill_(float("nan"))
    with pytest.raises(NumericalError, match=r"clips \[0, 1\]"):
        Encoder(model).encode(_clips())


def test_warm_up_and_config(model: VJepa2) -> None:
    Encoder(model).warm_up(frames=4, batch=2)
    with pytest.raises(ConfigError):
        EncoderConfig(dtype="int8")
